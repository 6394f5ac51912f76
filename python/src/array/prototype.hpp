// SPDX-License-Identifier: Apache-2.0
#pragma once
// The properties that a new array takes from its prototype, which is an Array, a NumPy array, or an
// array of any library that describes its memory.

#include <optional>

#include "array/array.hpp"
#include "transfer/interfaces.hpp"

namespace isthmus::python {

// The shape, type and location to use where the caller specifies none.
struct Model {
  nb::object shape;                   // not valid for an Array
  const TypedArray* array = nullptr;  // the prototype, if it is an Array
  const ElementType* type = nullptr;
  nb::object queue{};  // if not valid, the current queue
  isthmus_kind_t kind = ISTHMUS_KIND_DEVICE;
  std::optional<ArrayLayout> foreign_layout{};  // of another library's array, if it is known

  [[nodiscard]] const ArrayLayout* layout() const noexcept {
    return array != nullptr ? array->layout.get() : foreign_layout ? &*foreign_layout : nullptr;
  }
};

// Also accepts objects that NumPy converts to arrays. Throws NumPy's errors and those of the
// readers of the interfaces.
[[nodiscard]] Model model_of(nb::handle prototype);

// TypeError, with the reason, for a type that arrays do not support.
void require_type(ArrayInterface& interface);

}  // namespace isthmus::python
