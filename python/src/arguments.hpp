#pragma once
// Python's arguments as the library's: sizes, kinds, timeouts.

#include "common.hpp"

#include <limits>
#include <optional>

namespace isthmus::python {

// As `isinstance(value, numbers.Integral)` has it: an array of one integer is none.
[[nodiscard]] bool is_integral(nb::handle value);
// As a Python integer, not valid if it is none: arrays only say that they are. What its __index__
// raises is put into `cause`, if that is given; see take_foreign_error() for the rest.
[[nodiscard]] nb::object as_integer(nb::handle value,
                                    std::optional<nb::python_error>* cause = nullptr);
// The same with a TypeError, whose __cause__ is what __index__ raised.
[[nodiscard]] nb::object to_integer(nb::handle value, const char* what);
// As messages show it: one of many digits, which Python may not write at all, by its bits.
[[nodiscard]] nb::object shown_integer(nb::handle integer);
// TypeError for what is no str.
void require_text(nb::handle value, const char* what);
// Of a str, which it lives as long as; UnicodeEncodeError for what UTF-8 cannot write.
[[nodiscard]] const char* utf8_of(nb::handle text);
// A sequence, or what else can be gone through, as a tuple. TypeError, "`must_be`, not ...", for
// what is none, with `cause`, if there is one; its own error where it has another.
[[nodiscard]] nb::object to_tuple_of(nb::handle given, const char* must_be,
                                     std::optional<nb::python_error> cause = {});
// The bounds of a slice, whose own are integers as above or None.
struct slice_bounds {
  Py_ssize_t start = 0, stop = 0, step = 1;
};
// ValueError for a step of 0, TypeError for bounds that are no integers.
[[nodiscard]] slice_bounds to_slice(nb::handle slice);
// OutOfRangeError for what does not fit in 63 bits and a sign, TypeError for what is no integer.
[[nodiscard]] std::int64_t to_int64(nb::handle value, const char* what);
// ValueError below 0, OutOfRangeError from 2**63 on, TypeError for what is no integer.
[[nodiscard]] std::size_t to_size(nb::handle value, const char* what);
// The same, `otherwise` for None.
[[nodiscard]] std::size_t to_size_or(nb::handle value, const char* what, std::size_t otherwise);
// 0 for None; negative numbers, which dpctl takes for none, stay negative. InvalidArgumentError
// from 2**63 on, as for all that no device can.
[[nodiscard]] std::int64_t to_alignment(nb::handle value);
// The same of a resource, where the sign is an error: InvalidArgumentError for what is negative or
// has more than 63 bits.
[[nodiscard]] std::int64_t to_exact_alignment(nb::handle value);
// As `if value:` has it; the value's own error.
[[nodiscard]] bool is_true(nb::handle value);
// TypeError for what is neither True nor False.
[[nodiscard]] bool to_flag(nb::handle value, const char* what);
// An address: OutOfRangeError outside 0..2**64-1, TypeError for what is no integer.
[[nodiscard]] void* to_pointer(nb::handle value, const char* what);

// "device", "shared", "host". ValueError and TypeError otherwise.
[[nodiscard]] isthmus_kind_t to_kind(nb::handle value);
// The name of a kind, interned; borrowed.
[[nodiscard]] nb::handle kind_name(isthmus_kind_t kind) noexcept;

// Infinite where a number of Python's has no float. TypeError for what is no real number.
[[nodiscard]] double to_seconds(nb::handle value, const char* what);
// Seconds as nanoseconds; `k_for_ever` for infinity and what comes near it. ValueError for negative
// ones and NaN.
inline constexpr auto k_for_ever = std::numeric_limits<std::int64_t>::max();
[[nodiscard]] std::int64_t to_nanoseconds(nb::handle seconds, const char* what);
// The same as the library's timeouts: -1 for None and for ever.
[[nodiscard]] std::int64_t to_timeout(nb::handle seconds);

// Interned strings that are compared and looked up often.
struct interned_names {
  PyObject *device, *shared, *host, *unknown;
  PyObject *data, *shape, *syclobj;
};
extern interned_names interned;
void intern_names();

}  // namespace isthmus::python
