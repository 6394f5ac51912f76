// SPDX-License-Identifier: Apache-2.0
#pragma once
// The handle that a Python object owns. May be destroyed with or without the interpreter's lock.

#include "core/common.hpp"
#include "core/gil.hpp"

namespace isthmus::python {

// A library reference that a Python object owns. It is released without the interpreter's lock:
// after the last release the driver frees its object, and may wait for the device.
template <class Noun>
class OwnedHandle : public CountedHandle<Noun> {
 public:
  OwnedHandle() noexcept = default;
  OwnedHandle(CountedHandle<Noun>&& owned) noexcept : CountedHandle<Noun>{std::move(owned)} {}
  OwnedHandle(OwnedHandle&&) noexcept = default;
  OwnedHandle& operator=(OwnedHandle&&) noexcept = default;
  ~OwnedHandle() {
    if (auto* const raw = this->detach()) {
      const HeldGilRelease released;
      Counted<Noun>::release(raw);
    }
  }
};

}  // namespace isthmus::python
