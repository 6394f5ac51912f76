// SPDX-License-Identifier: Apache-2.0
#pragma once
// Array, and the functions that create arrays.

#include "buffer/typed_array.hpp"

namespace isthmus::python {

void bind_array(nb::module_& module);
void bind_array_make(nb::module_& module);

// Parts of the class.
void bind_array_properties(nb::class_<TypedArray>& bound);
void bind_array_lifetime(nb::class_<TypedArray>& bound);
void bind_array_flags(nb::module_& module, nb::class_<TypedArray>& bound);
void bind_array_exchange(nb::class_<TypedArray>& bound);
void bind_array_views(nb::module_& module, nb::class_<TypedArray>& bound);
void bind_array_elements(nb::module_& module, nb::class_<TypedArray>& bound);
void bind_array_copies(nb::module_& module, nb::class_<TypedArray>& bound);
void bind_array_conversions(nb::class_<TypedArray>& bound);

}  // namespace isthmus::python
