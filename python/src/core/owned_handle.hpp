// SPDX-License-Identifier: Apache-2.0
#pragma once
// The handle that a Python object owns. May be destroyed with or without the interpreter's lock.

#include "core/common.hpp"
#include "core/gil.hpp"

namespace isthmus::python {

// A library reference that a Python object owns. It is released without the interpreter's lock:
// after the last release the driver frees its object, and may wait for the device.
template <class Handle>
class OwnedHandle : public Handle {
 public:
  OwnedHandle() noexcept = default;
  OwnedHandle(Handle&& owned) noexcept : Handle{std::move(owned)} {}
  OwnedHandle(OwnedHandle&&) noexcept = default;
  // `other` releases the previous reference.
  OwnedHandle& operator=(OwnedHandle&& other) noexcept {
    this->swap(other);
    return *this;
  }
  ~OwnedHandle() {
    if (*this) {
      const HeldGilRelease released;
      static_cast<void>(Handle::take(this->detach()));
    }
  }
};

}  // namespace isthmus::python
