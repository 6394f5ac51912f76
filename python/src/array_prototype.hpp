// SPDX-License-Identifier: Apache-2.0
#pragma once
// What an array takes from its prototype: an Array, a NumPy array, or an array of any library that
// describes its memory.

#include <optional>

#include "interfaces.hpp"
#include "typed_array.hpp"

namespace isthmus::python {

// Shape, type and location, unless the caller names them.
struct Model {
  nb::object shape;                   // not valid for an Array
  const TypedArray* array = nullptr;  // the prototype, if it is an Array
  const ElementType* type = nullptr;
  nb::object queue{};  // not valid: the current one
  isthmus_kind_t kind = ISTHMUS_KIND_DEVICE;
  std::optional<ArrayLayout> foreign_layout{};  // of another library's array, if it is known

  [[nodiscard]] const ArrayLayout* layout() const noexcept {
    return array != nullptr ? array->layout.get() : foreign_layout ? &*foreign_layout : nullptr;
  }
};

// Accepts anything that NumPy makes an array of, too. Throws NumPy's errors and those of the
// readers of the interfaces.
[[nodiscard]] Model model_of(nb::handle prototype);

// TypeError, with the reason, for a type that arrays do not support.
void require_type(ArrayInterface& interface);

}  // namespace isthmus::python
