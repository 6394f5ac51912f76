// SPDX-License-Identifier: Apache-2.0
#pragma once
// Single elements: Python numbers to bytes, and bytes to Python numbers. Needs the interpreter's
// lock.

#include <optional>

#include "array_layout.hpp"

namespace isthmus::python {

// A number as an element of `type`, for a copy to convert.
struct ElementValue {
  alignas(16) std::byte bytes[32];
  const ElementType* type = nullptr;
};

// Converts a Python or NumPy number to an element of `out`, or returns nothing for other objects.
// An integer must fit (OverflowError). Other numbers may lose what `out` cannot represent if the
// casting is UNSAFE, and then a float becomes an integer as by int(); otherwise TypeError. A Python
// complex as a real number is a TypeError; for NumPy's the caller warns
// (warn_if_imaginary_discarded). An object that exports elements is an array, not a number. If
// __index__ raises, returns nothing.
[[nodiscard]] std::optional<ElementValue> to_value(nb::handle number, const ElementType& out,
                                                   isthmus_casting_t casting);
// Whether the object is a number only by its methods (__float__, __complex__, __int__, __index__),
// like Decimal and Fraction: NumPy has no type for it.
[[nodiscard]] bool is_untyped_number(nb::handle object);
// TypeError if numpy.copyto would not cast the number to an element of `out`. There, a Python int,
// float or complex has any type of its kind or a higher one; a bool or a NumPy number has its own
// type; and an integer by __index__ is an object.
void require_castable(nb::handle number, const ElementType& out, isthmus_casting_t casting);
// The element as a Python bool, int, float or complex; for long double as a NumPy number.
[[nodiscard]] nb::object to_number(const void* element, const ElementType& type);
// Sets an element to the value if that needs no function of the library; otherwise returns false.
[[nodiscard]] bool store_value(const ElementValue& value, void* element,
                               const ElementType& type) noexcept;

}  // namespace isthmus::python
