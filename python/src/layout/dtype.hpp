// SPDX-License-Identifier: Apache-2.0
#pragma once
// DType: the name of an element type, for example isthmus.float32. Needs the interpreter's lock.

#include "layout/layout.hpp"

namespace isthmus::python {

// The type that a DType names; nullptr for other objects.
[[nodiscard]] const ElementType* type_named_by(nb::handle object) noexcept;
// The only DType of a type, as a borrowed reference.
[[nodiscard]] nb::handle dtype_object_of(const ElementType& type);
// NumPy's dtype, for bfloat16 the one of ml_dtypes; not valid without that package.
[[nodiscard]] nb::object numpy_dtype_of(const ElementType& type);
// The same, for a NumPy array of such elements. TypeError if there is none.
[[nodiscard]] nb::object require_numpy_dtype(const ElementType& type);

void bind_dtype(nb::module_& module);

}  // namespace isthmus::python
