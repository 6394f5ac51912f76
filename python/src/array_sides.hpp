#pragma once
// The two sides of a copy between arrays, of any strides and types.

#include "transfers.hpp"
#include "typed_array.hpp"

namespace isthmus::python {

struct array_side {
  place where;          // of the first element
  array_layout layout;  // its type is one of ours

  // Borrows this one's.
  [[nodiscard]] isthmus_array_t get() const noexcept {
    return {where.raw, layout.type->dtype, layout.shape.size(), layout.shape.data(),
            layout.strides.data()};
  }
};

// Keeps the Buffer, not the array, which another thread may free meanwhile.
[[nodiscard]] array_side side_of(const typed_array& of, access wanted, const char* role);
// What tells type and shape itself: an Array, a Buffer (as bytes), the buffer protocol, the
// interfaces, DLPack. TypeError for anything else and for types that no array here has,
// ReadOnlyError for a destination that cannot be written.
[[nodiscard]] array_side to_side(nb::handle object, access wanted, const char* role);
// How elements of lists, and of what else NumPy alone makes arrays of, become others.
enum class conversion {
  cast,   // from the type that NumPy gives them; integers must fit the destination
  force,  // the same, and by NumPy's astype where no array here has that type: objects, text, dates
  assign  // each as by float(x), int(x) or bool(x), as NumPy assigns
};
// The same, or else what NumPy makes an array of: nested lists, numbers, another order of bytes.
// `into`: what it is to become. OverflowError for integers of a list that do not fit it, and with
// `assign` TypeError for complex numbers as real ones and ValueError for NaN as an integer.
[[nodiscard]] array_side to_source(nb::handle object, const element_type& into, conversion as);

// The type of what `to_side` takes, without a view of its elements for writing; nullptr for all
// else.
[[nodiscard]] const element_type* type_told_by(nb::handle object, const char* role);
// By numpy.asarray, also of lists of other libraries' arrays, of which it takes none itself.
// ValueError for an __array_interface__ with numbers that cannot be.
[[nodiscard]] nb::object numpy_array_of(nb::handle object, nb::handle dtype = nb::none());

// As NumPy, warns of elements that lose their imaginary part (ComplexWarning), at the caller's line
// outside of this package; throws where the warning is an error.
void warn_of_lost_parts(const element_type& from, const element_type& to);
// TypeError where the rule does not allow that change of type, ValueError where the source does not
// broadcast to the destination's shape; else warns as above.
void require_copyable(const array_layout& to, const array_layout& from, isthmus_casting_t casting);
// Pre: the above holds.
[[nodiscard]] nb::object copy_sides(array_side& to, array_side& from, isthmus_casting_t casting,
                                    const operation_arguments& how);
// The one element of an array of no dimensions, once what is pending on it has ended.
[[nodiscard]] nb::object only_number(array_side& of);
// Array.fill's: sets every element to a number, or to the one element of an array.
[[nodiscard]] nb::object fill_array(nb::handle array, nb::handle value,
                                    const operation_arguments& how);
// "no", "safe", "same_kind", "unsafe", or "equiv", which is "no" here. ValueError, TypeError.
[[nodiscard]] isthmus_casting_t to_casting(nb::handle name);

}  // namespace isthmus::python
