#pragma once
// Single elements: Python's numbers as bytes, and bytes as Python's numbers.

#include <optional>

#include "array_layout.hpp"

namespace isthmus::python {

// A number as an element of `type`, which a copy may convert.
struct element_value {
  alignas(16) std::byte bytes[32];
  const element_type* type = nullptr;
};

// A Python or NumPy number that is to become an element of `into`; nothing for all else. An integer
// must fit (OverflowError). Other numbers may lose what `into` has no place for with casting
// UNSAFE, where a whole number is made of a float as by int(); else TypeError. Python's complex is
// TypeError for real numbers, NumPy's are the caller's to warn of (warn_of_lost_parts). What
// exports elements is an array, not a number, and an __index__ that raises makes none.
[[nodiscard]] std::optional<element_value> to_value(nb::handle number, const element_type& into,
                                                    isthmus_casting_t casting);
// Whether it exports elements, by the buffer protocol or another library's: an array is no number,
// whatever else it has, as arrays of any size have __index__.
[[nodiscard]] bool is_array(nb::handle object);
// Whether the object is a number by its methods (__float__, __complex__, __int__, __index__) alone,
// as Decimal and Fraction are: NumPy has no type of its own for it.
[[nodiscard]] bool is_untyped_number(nb::handle object);
// TypeError where numpy.copyto would not let the number become an element of `into`: a Python int,
// float or complex is of any type of its kind or a later one, a bool and one of NumPy's of their
// own types, and what is an integer by __index__ an object.
void require_castable(nb::handle number, const element_type& into, isthmus_casting_t casting);
// An element of `type` by Python itself: bool, int, float or complex; of NumPy's for long double.
[[nodiscard]] nb::object to_number(const void* element, const element_type& type);
// Sets an element to the value, where that takes no function of the library's: else false.
[[nodiscard]] bool store_value(const element_value& value, void* element,
                               const element_type& type) noexcept;

}  // namespace isthmus::python
