// SPDX-License-Identifier: Apache-2.0
#pragma once
// Holds an object that outlives every thread. It is constructed in place, so that its first use
// needs no memory and cannot fail, and it is never destroyed.

#include <cstddef>
#include <new>
#include <utility>

namespace isthmus {

// T's constructor must be noexcept if the first use is in a noexcept function.
template <class T>
class NeverDestroyed {
 public:
  template <class... Args>
  explicit NeverDestroyed(Args&&... args) noexcept(noexcept(T(std::forward<Args>(args)...))) {
    ::new (static_cast<void*>(storage_)) T(std::forward<Args>(args)...);
  }
  NeverDestroyed(const NeverDestroyed&) = delete;
  NeverDestroyed& operator=(const NeverDestroyed&) = delete;

  [[nodiscard]] T& operator*() noexcept { return *std::launder(reinterpret_cast<T*>(storage_)); }

 private:
  alignas(T) std::byte storage_[sizeof(T)];
};

}  // namespace isthmus
