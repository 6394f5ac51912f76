// SPDX-License-Identifier: Apache-2.0
#pragma once
// Keeps an object of the caller alive and releases it exactly once, on every path.

#include <isthmus/isthmus.h>

#include <utility>

namespace isthmus {

class Owner {
 public:
  Owner() noexcept = default;
  explicit Owner(isthmus_owner_t raw) noexcept : raw_{raw} {}
  Owner(Owner&& other) noexcept : raw_{std::exchange(other.raw_, {})} {}
  Owner& operator=(Owner&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Owner() {
    if (raw_.release != nullptr) {
      raw_.release(raw_.object);
    }
  }

  [[nodiscard]] explicit operator bool() const noexcept { return raw_.release != nullptr; }
  [[nodiscard]] void* object() const noexcept { return raw_.object; }
  [[nodiscard]] isthmus_owner_t detach() noexcept { return std::exchange(raw_, {}); }

 private:
  isthmus_owner_t raw_{};
};

// Returns an owner of `value`, an object of the library such as a counted pointer. Throws
// std::bad_alloc.
template <class Value>
[[nodiscard]] Owner owner_of(Value value) {
  return Owner{isthmus_owner_t{new Value(std::move(value)),
                               [](void* object) { delete static_cast<Value*>(object); }}};
}

}  // namespace isthmus
