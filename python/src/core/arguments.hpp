// SPDX-License-Identifier: Apache-2.0
#pragma once
// Conversion of Python arguments to the library's types: sizes, kinds, timeouts. All of these need
// the interpreter's lock, and may run Python code of the argument.

#include "core/common.hpp"

#include <limits>
#include <optional>

namespace isthmus::python {

// Like `isinstance(value, numbers.Integral)`: an array of one integer is not an integer.
[[nodiscard]] ISTHMUS_EXPORTED bool is_integral(nb::handle value);
// Converts the value to a Python integer. The result is not valid if the value is not an integer
// (arrays that only implement __index__ are not). An exception of its __index__ is stored in
// `cause`, unless that is null; take_foreign_error() names the exceptions that are thrown instead.
[[nodiscard]] nb::object as_integer(nb::handle value,
                                    std::optional<nb::python_error>* cause = nullptr);
// Like as_integer, but throws a TypeError whose __cause__ is the exception of __index__.
[[nodiscard]] ISTHMUS_EXPORTED nb::object to_integer(nb::handle value, const char* name);
// The integer as text for messages. For an integer with many digits, which Python may refuse to
// convert to text, the number of its bits.
[[nodiscard]] ISTHMUS_EXPORTED nb::object shown_integer(nb::handle integer);
// TypeError if the value is not a str.
void require_text(nb::handle value, const char* name);
// The text of a str in UTF-8, valid as long as the str. UnicodeEncodeError if it cannot be encoded.
[[nodiscard]] const char* utf8_of(nb::handle text);
// Converts a sequence or other iterable to a tuple. Other objects raise TypeError ("`must_be`, not
// ..."), with `cause` if there is one. Other errors of the object propagate.
[[nodiscard]] nb::object to_tuple_of(nb::handle argument, const char* must_be,
                                     std::optional<nb::python_error> cause = {});
// The bounds of a Python slice, whose own members are integers or None.
struct SliceBounds {
  Py_ssize_t start = 0, stop = 0, step = 1;
};
// ValueError for a step of 0, TypeError for bounds that are not integers.
[[nodiscard]] SliceBounds to_slice(nb::handle slice);
// OutOfRangeError if the value does not fit in 64 bits, TypeError if it is not an integer.
[[nodiscard]] std::int64_t to_int64(nb::handle value, const char* name);
// ValueError for a negative value, OutOfRangeError from 2**63 on, TypeError if it is not an
// integer.
[[nodiscard]] std::size_t to_size(nb::handle value, const char* name);
// The same, but returns `default_size` for None.
[[nodiscard]] std::size_t to_size_or(nb::handle value, const char* name, std::size_t default_size);
// Returns 0 for None, and for negative numbers, which dpctl treats as no alignment.
// InvalidArgumentError from 2**63 on, as for alignments that no device supports.
[[nodiscard]] std::size_t to_alignment(nb::handle value);
// The same for a resource, where negative numbers are an error: InvalidArgumentError for a number
// that is negative or has more than 63 bits.
[[nodiscard]] std::size_t to_exact_alignment(nb::handle value);
// The result of `if value:`. Errors of the value propagate.
[[nodiscard]] bool is_true(nb::handle value);
// TypeError if it is neither True nor False.
[[nodiscard]] bool to_flag(nb::handle value, const char* name);
// Converts an address. OutOfRangeError outside 0..2**64-1, TypeError if it is not an integer.
[[nodiscard]] void* to_pointer(nb::handle value, const char* name);

// Accepts "device", "shared" and "host". ValueError for other text, TypeError for other objects.
[[nodiscard]] isthmus_kind_t to_kind(nb::handle value);

// Returns infinity for a Python number that is too large for a float. TypeError if the value is not
// a real number.
[[nodiscard]] double to_seconds(nb::handle value, const char* name);
// Seconds as nanoseconds; `k_infinite` for infinity and for times too long for 63 bits. ValueError
// for negative numbers and NaN.
inline constexpr auto k_infinite = std::numeric_limits<std::int64_t>::max();
[[nodiscard]] std::int64_t to_nanoseconds(nb::handle seconds, const char* name);
// Seconds as the timeout of a library call: -1 (no timeout) for None and infinity.
[[nodiscard]] std::int64_t to_timeout(nb::handle seconds);

}  // namespace isthmus::python
