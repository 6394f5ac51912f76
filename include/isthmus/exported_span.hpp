// SPDX-License-Identifier: Apache-2.0
// A range of T in memory that an object of the library keeps valid: the base of the views of host
// memory.
//
// Movable, not copyable. The destructor ends the access, once. Cost: three words. Thread safety: as
// any plain object.
#pragma once

#include <isthmus/detail/cxx20.hpp>

#include <span>  // declares the concepts of <ranges> too, which is much larger
#include <utility>

namespace isthmus {
inline namespace v1 {
namespace detail {

// `owner` keeps the memory valid until `release(owner.get())` is called. An empty owner needs
// no such call.
template <class T, class Owner, auto release>
class exported_span {
 public:
  exported_span() noexcept = default;
  exported_span(exported_span&& other) noexcept
      : owner_(std::move(other.owner_)), values_(std::exchange(other.values_, {})) {}
  exported_span& operator=(exported_span&& other) noexcept {
    exported_span temporary(std::move(other));
    std::swap(owner_, temporary.owner_);
    std::swap(values_, temporary.values_);
    return *this;
  }
  exported_span(const exported_span&) = delete;
  exported_span& operator=(const exported_span&) = delete;
  ~exported_span() {
    if (owner_) release(owner_.get());
  }

  [[nodiscard]] std::span<T> span() const noexcept { return values_; }
  operator std::span<T>() const noexcept { return values_; }
  [[nodiscard]] T* data() const noexcept { return values_.data(); }
  [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }
  [[nodiscard]] auto begin() const noexcept { return values_.begin(); }
  [[nodiscard]] auto end() const noexcept { return values_.end(); }
  [[nodiscard]] T& operator[](std::size_t index) const noexcept { return values_[index]; }

 protected:
  // Takes over an access that has begun; the destructor ends it.
  exported_span(Owner owner, std::span<T> values) noexcept
      : owner_(std::move(owner)), values_(values) {}

 private:
  Owner owner_;
  std::span<T> values_;
};

}  // namespace detail
}  // namespace v1
}  // namespace isthmus
