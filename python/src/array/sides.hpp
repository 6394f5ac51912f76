// SPDX-License-Identifier: Apache-2.0
#pragma once
// The two sides of a copy between arrays, of any strides and types. Needs the interpreter's lock,
// which waits and copies release.

#include "array/array.hpp"
#include "transfer/transfers.hpp"

namespace isthmus::python {

struct ArraySide {
  Endpoint endpoint;   // of the first element
  ArrayLayout layout;  // the type is one that arrays support

  // Borrows from this object.
  [[nodiscard]] isthmus_array_t get() const noexcept {
    return {endpoint.raw, layout.type->dtype, layout.shape.size(), layout.shape.data(),
            layout.strides.data()};
  }
};

// Holds the Buffer rather than the array, because another thread may free the array during the
// copy.
[[nodiscard]] ArraySide side_of(const TypedArray& array, Access access, const char* role);
// Converts an object that describes its type and shape: an Array, a Buffer (as bytes), the buffer
// protocol, the interfaces, DLPack. TypeError for other objects and for types that arrays do not
// support, ReadOnlyError for a destination that cannot be written.
[[nodiscard]] ArraySide to_side(nb::handle object, Access access, const char* role);
// How to convert the elements of lists and of other objects that only NumPy converts to arrays.
enum class Conversion {
  cast,   // from the type that NumPy chooses for them; integers must fit the destination
  force,  // like `cast`, but unsupported types (objects, text, dates) by NumPy's astype
  assign  // each element by float(x), int(x) or bool(x), as in NumPy's assignments
};
// Like to_side, but also accepts objects that NumPy converts to arrays: nested lists, numbers,
// non-native byte order. `out`: the type to convert to. OverflowError for integers of a list that
// do not fit. With `assign`, TypeError if a complex number would become a real one, and ValueError
// if NaN would become an integer.
[[nodiscard]] ArraySide to_source(nb::handle object, const ElementType& out, Conversion conversion);

// The element type of an object that `to_side` accepts; no writable view is requested. nullptr for
// other objects.
[[nodiscard]] const ElementType* element_type_of(nb::handle object, const char* role);
// Calls numpy.asarray. Also accepts lists of other libraries' arrays, which numpy.asarray does not.
// ValueError for an __array_interface__ with impossible numbers.
[[nodiscard]] nb::object numpy_array_of(nb::handle object, nb::handle dtype = nb::none());

// Warns, as NumPy does, if elements lose their imaginary part (ComplexWarning). The warning names
// the caller's line outside of this package. Throws if the warning is an error.
void warn_if_imaginary_discarded(const ElementType& source_type, const ElementType& target_type);
// TypeError if the casting rule does not allow that change of type, ValueError if the source does
// not broadcast to the destination's shape; otherwise warns as above.
void require_copyable(const ArrayLayout& target_layout, const ArrayLayout& source_layout,
                      isthmus_casting_t casting);
// For sides that require_copyable() has accepted.
[[nodiscard]] nb::object copy_sides(ArraySide& target, ArraySide& source, isthmus_casting_t casting,
                                    const OperationArguments& arguments);
// The element of an array without dimensions, after pending work on its memory has completed.
[[nodiscard]] nb::object only_number(ArraySide& side);
// Implements Array.fill: sets every element to a number, or to the one element of an array.
[[nodiscard]] nb::object fill_array(nb::handle array, nb::handle value,
                                    const OperationArguments& arguments);
// Accepts "no", "safe", "same_kind" and "unsafe", and "equiv" as "no". ValueError for other text,
// TypeError for other objects.
[[nodiscard]] isthmus_casting_t to_casting(nb::handle name);

}  // namespace isthmus::python
