// SPDX-License-Identifier: Apache-2.0
#pragma once
// Single elements: Python numbers to bytes, and bytes to Python numbers. Needs the interpreter's
// lock.

#include <optional>

#include "layout/layout.hpp"

namespace isthmus::python {

// A number as an element of `type`, for a copy to convert.
struct ElementValue {
  alignas(16) std::byte bytes[32];
  const ElementType* type = nullptr;
};

// Converts a Python or NumPy number to an element of `out`. Returns nothing for other objects,
// which include all objects that export elements, and if __index__ raises.
//
// An integer must fit (OverflowError). A Python float as an integer or bool is a TypeError, unless
// the casting is UNSAFE: it is then converted as by int() or bool(). A Python complex as an integer
// or real floating-point number is a TypeError. A NumPy number of a type that the casting does not
// allow is a TypeError; if a number loses its imaginary part, the caller warns
// (warn_if_imaginary_discarded).
[[nodiscard]] std::optional<ElementValue> to_value(nb::handle number, const ElementType& out,
                                                   isthmus_casting_t casting);
// Whether the object is a number only by its methods (__float__, __complex__, __int__, __index__),
// like Decimal and Fraction: NumPy has no type for it.
[[nodiscard]] bool is_untyped_number(nb::handle object);
// TypeError if numpy.copyto would not cast the number to an element of `out`. NumPy treats a Python
// int, float or complex as any type of its kind or a higher one, a bool or a NumPy number as its
// own type, and an object that is an integer only by __index__ as an object.
void require_castable(nb::handle number, const ElementType& out, isthmus_casting_t casting);
// The element as a Python bool, int, float or complex; for long double as a NumPy number.
[[nodiscard]] nb::object to_number(const void* element, const ElementType& type);
// Sets an element to the value if that needs no function of the library; otherwise returns false.
[[nodiscard]] bool store_value(const ElementValue& value, void* element,
                               const ElementType& type) noexcept;

}  // namespace isthmus::python
