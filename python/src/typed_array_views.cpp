// SPDX-License-Identifier: Apache-2.0
// Views of Array: with other axes, with another shape, with another type.

#include <numeric>

#include "arguments.hpp"
#include "array_axes.hpp"
#include "typed_array.hpp"

namespace isthmus::python {
namespace {

// -- axes -----------------------------------------------------------------------------------------

ArrayLayout like(const TypedLayout& layout) { return {{}, {}, layout.item, layout.type}; }

nb::object view_with(nb::handle object, ArrayLayout layout, std::int64_t moved = 0) {
  const auto& of = require_array(object, "x");
  return make_array_view(object, of, share_layout(std::move(layout)),
                         of.offset + static_cast<std::size_t>(moved));
}

nb::object permuted(nb::handle object, const ArrayNumbers& axes) {
  const auto& of = *require_array(object, "x").layout;
  auto made = like(of);
  for (const auto axis : axes) {
    made.shape.push_back(of.shape[static_cast<std::size_t>(axis)]);
    made.strides.push_back(of.strides[static_cast<std::size_t>(axis)]);
  }
  return view_with(object, std::move(made));
}

SharedLayout reversed_layout(const TypedLayout& layout) {
  auto made = like(layout);
  for (auto i = layout.shape.size(); i-- > 0;) {
    made.shape.push_back(layout.shape[i]);
    made.strides.push_back(layout.strides[i]);
  }
  return share_layout(std::move(made));
}

// For a layout that is a reversed one, the original.
SharedLayout reversed_once(const SharedLayout& layout) {
  if (layout->reverse_of != nullptr) {
    return SharedLayout{layout->reverse_of};
  }
  if (!layout->reversed) {
    layout->reversed = reversed_layout(*layout);
    layout->reversed->reverse_of = layout.get();
  }
  return layout->reversed;
}

nb::object reversed_axes(nb::handle object) {
  const auto& of = require_array(object, "x");
  return make_array_view(object, of, reversed_once(of.layout), of.offset);
}

ArrayNumbers axes_in_order(std::size_t ndim) {
  ArrayNumbers axes(ndim);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

nb::object swapped(nb::handle object, std::size_t one, std::size_t other) {
  auto axes = axes_in_order(require_array(object, "x").layout->shape.size());
  std::swap(axes[one], axes[other]);
  return permuted(object, axes);
}

nb::object swap_axes(nb::handle object, nb::handle one, nb::handle other) {
  const auto ndim = require_array(object, "x").layout->shape.size();
  return swapped(object, to_axis(one, ndim), to_axis(other, ndim));
}

nb::object matrix_transpose(nb::handle object) {
  const auto ndim = require_array(object, "x").layout->shape.size();
  if (ndim < 2) {
    raise_python(PyExc_ValueError, "mT needs an array of 2 dimensions or more, not %zu", ndim);
  }
  return swapped(object, ndim - 2, ndim - 1);
}

nb::object permute(nb::handle object, nb::handle axes) {
  return permuted(object, to_permutation(axes, require_array(object, "x").layout->shape.size()));
}

nb::object transpose(nb::handle object, const nb::args& axes) {
  if (axes.size() == 0 || (axes.size() == 1 && nb::handle{axes[0]}.is_none())) {
    return reversed_axes(object);
  }
  return axes.size() == 1 ? permute(object, nb::object{axes[0]}) : permute(object, axes);
}

nb::object move_axis(nb::handle object, nb::handle source, nb::handle destination) {
  const auto ndim = require_array(object, "x").layout->shape.size();
  const auto from = to_axes(source, ndim);
  const auto to = to_axes(destination, ndim);
  if (from.size() != to.size()) {
    raise_python(PyExc_ValueError, "cannot move %zu axes to %zu positions: %R to %R", from.size(),
                 to.size(), source.ptr(), destination.ptr());
  }
  ArrayNumbers order(ndim, -1);
  for (std::size_t i = 0; i < from.size(); ++i) {
    order[static_cast<std::size_t>(to[i])] = from[i];
  }
  std::int64_t next = 0;
  for (auto& each : order) {
    while (each < 0 && std::find(from.begin(), from.end(), next) != from.end()) {
      ++next;
    }
    each = each < 0 ? next++ : each;
  }
  return permuted(object, order);
}

nb::object squeeze(nb::handle object, nb::handle given) {
  const auto& of = *require_array(object, "x").layout;
  const auto axes = given.is_none() ? ArrayNumbers{} : to_axes(given, of.shape.size());
  auto made = like(of);
  for (std::size_t i = 0; i < of.shape.size(); ++i) {
    const bool is_named =
        std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(i)) != axes.end();
    if (is_named && of.shape[i] != 1) {
      raise_python(PyExc_ValueError,
                   "axis %zu has size %lld: only an axis of size 1 can be removed", i,
                   static_cast<long long>(of.shape[i]));
    }
    if (is_named || (given.is_none() && of.shape[i] == 1)) {
      continue;
    }
    made.shape.push_back(of.shape[i]);
    made.strides.push_back(of.strides[i]);
  }
  return view_with(object, std::move(made));
}

nb::object expand(nb::handle object, nb::handle given) {
  const auto& of = *require_array(object, "x").layout;
  const nb::object all = to_axis_tuple(given);
  const auto ndim = of.shape.size() + nb::len(all);
  if (ndim > PyBUF_MAX_NDIM) {
    raise_python(PyExc_ValueError, "an array has at most %d dimensions, not %zu", PyBUF_MAX_NDIM,
                 ndim);
  }
  auto axes = to_axes(all, ndim);
  std::sort(axes.begin(), axes.end());
  ArrayLayout made = of;
  for (const auto axis : axes) {
    made.shape.insert(static_cast<std::size_t>(axis), 1);
    made.strides.insert(static_cast<std::size_t>(axis), 0);
  }
  return view_with(object, std::move(made));
}

nb::object flip(nb::handle object, nb::handle given) {
  const auto& of = *require_array(object, "x").layout;
  const auto ndim = of.shape.size();
  ArrayLayout made = of;
  std::int64_t moved = 0;
  for (const auto each : given.is_none() ? axes_in_order(ndim) : to_axes(given, ndim)) {
    const auto axis = static_cast<std::size_t>(each);
    made.strides[axis] = -of.strides[axis];
    moved += of.size == 0 ? 0 : (of.shape[axis] - 1) * of.strides[axis];
  }
  return view_with(object, std::move(made), moved);
}

nb::object broadcast_to(nb::handle object, nb::handle shape) {
  const auto& of = require_array(object, "x");
  auto wide = broadcast(*of.layout, to_shape(shape));
  nb::object made;
  try {
    made = view_with(object, std::move(wide));
  } catch (const TooFar&) {
    raise_python(error_type(ISTHMUS_ERROR_OUT_OF_RANGE), "shape %R does not fit in 63 bits",
                 shape.ptr());
  }
  typed_array_of(made)->is_locked = true;
  return made;
}

// -- shape ----------------------------------------------------------------------------------------

enum class Copying { if_needed, always, never };

Copying to_copying(nb::handle copy) {
  return copy.is_none()          ? Copying::if_needed
         : to_flag(copy, "copy") ? Copying::always
                                 : Copying::never;
}

// Pre: the shape has the same number of elements.
nb::object in_shape(nb::handle object, ArrayNumbers shape, Copying copying) {
  const auto& of = require_array(object, "x");
  const auto& old = *of.layout;
  if (copying == Copying::always) {
    return in_shape(copy_of_array(object), std::move(shape), Copying::never);
  }
  if (old.is_c_dense) {
    return make_array_view(object, of, dense_layout(std::move(shape), *old.type), of.offset);
  }
  ArrayLayout made = like(old);
  if (find_strides(old, shape, made.strides)) {
    made.shape = std::move(shape);
    return view_with(object, std::move(made));
  }
  if (copying == Copying::never) {
    raise_python(PyExc_ValueError,
                 "reshaping an array of shape %R and strides %R to the shape %R needs a copy: pass "
                 "copy=None to allow it",
                 to_tuple(old.shape).ptr(), to_tuple(old.strides).ptr(), to_tuple(shape).ptr());
  }
  return in_shape(copy_of_array(object), std::move(shape), Copying::never);
}

nb::object reshaped(nb::handle object, nb::handle given, Copying copying) {
  return in_shape(object, to_shape_of(given, require_array(object, "x").layout->size), copying);
}

nb::object reshape(nb::handle object, const nb::args& given, nb::handle copy) {
  return reshaped(object, given.size() == 1 ? nb::object{given[0]} : nb::object{given},
                  to_copying(copy));
}

nb::object reshape_to(nb::handle object, nb::handle shape, nb::handle copy) {
  return reshaped(object, shape, to_copying(copy));
}

nb::object ravel(nb::handle object) { return reshaped(object, nb::int_(-1), Copying::never); }

// -- type -----------------------------------------------------------------------------------------

// By NumPy's rules: another element size changes the last extent, whose elements must have no gaps.
ArrayLayout retyped(const TypedLayout& layout, const ElementType& type) {
  ArrayLayout made = layout;
  made.type = &type;
  made.item = type.item;
  if (layout.item == type.item) {
    return made;
  }
  if (made.shape.empty()) {
    raise_python(
        PyExc_ValueError,
        "an array of 0 dimensions cannot be viewed as %s, whose elements have %d bytes, not %lld",
        type.name, type.item, static_cast<long long>(layout.item));
  }
  auto& last = made.shape.back();
  if (last != 1 && layout.size != 0 && made.strides.back() != layout.item) {
    raise_python(PyExc_ValueError,
                 "a view as %s needs a contiguous last axis, but its elements lie %lld bytes apart",
                 type.name, static_cast<long long>(made.strides.back()));
  }
  std::int64_t nbytes = 0;
  if (__builtin_mul_overflow(last, layout.item, &nbytes)) {
    throw TooFar{};
  }
  if (nbytes % type.item != 0) {
    raise_python(
        PyExc_ValueError,
        "the last axis has %lld bytes, which is not a multiple of the new element size, %d",
        static_cast<long long>(nbytes), type.item);
  }
  last = nbytes / type.item;
  made.strides.back() = type.item;
  return made;
}

void require_aligned(const TypedArray& array, const ArrayLayout& made) {
  const auto& type = *made.type;
  const auto first =
      reinterpret_cast<std::uintptr_t>(info_of(buffer_in(array)).pointer) + array.offset;
  if (first % type.alignment != 0) {
    raise_python(
        PyExc_ValueError,
        "the first element lies at %p, which is not a multiple of %d bytes, the alignment of %s",
        reinterpret_cast<void*>(first), type.alignment, type.name);
  }
  for (std::size_t i = 0; i < made.shape.size(); ++i) {
    if (made.shape[i] > 1 && made.strides[i] % made.item != 0) {
      raise_python(PyExc_ValueError,
                   "elements along axis %zu lie %lld bytes apart, which is not a multiple of %d, "
                   "the element size of %s",
                   i, static_cast<long long>(made.strides[i]), type.item, type.name);
    }
  }
}

nb::object view_as(nb::handle object, nb::handle dtype) {
  const auto& of = require_array(object, "x");
  auto made = retyped(*of.layout, dtype.is_none() ? *of.layout->type : to_element_type(dtype));
  if (of.layout->size != 0 && made.type != of.layout->type) {
    require_aligned(of, made);
  }
  for (std::size_t i = 0; i < made.shape.size(); ++i) {
    made.strides[i] = made.shape[i] > 1 ? made.strides[i] : made.item;
  }
  return view_with(object, std::move(made));
}

void bind_axes(nb::class_<TypedArray>& bound) {
  bound
      .def_prop_ro("T", &reversed_axes, nb::sig("def T(self) -> Array"),
                   "A view with the axes in reverse order.")
      .def_prop_ro("mT", &matrix_transpose, nb::sig("def mT(self) -> Array"),
                   "A view with the last two axes swapped; ValueError below 2 dimensions.")
      .def("transpose", &transpose, nb::arg("axes"),
           nb::sig("def transpose(self, *axes: int | Sequence[int] | None) -> Array"),
           "A view with the axes in that order: integers or one sequence of integers; without\n"
           "arguments in reverse order. ValueError unless each axis is named once.")
      .def(
          "swapaxes", &swap_axes, nb::arg("axis1").none(), nb::arg("axis2").none(),
          nb::sig("def swapaxes(self, axis1: int, axis2: int) -> Array"),
          "A view with two axes swapped. Like all functions with axes it raises NumPy's AxisError.")
      .def("squeeze", &squeeze, nb::arg("axis").none() = nb::none(),
           nb::sig("def squeeze(self, axis: int | Sequence[int] | None = None) -> Array"),
           "A view without the axes of size 1: all of them, or those named (ValueError for\n"
           "another size).");
}

void bind_shape_and_type(nb::class_<TypedArray>& bound) {
  bound
      .def("reshape", &reshape, nb::arg("shape"), nb::kw_only(),
           nb::arg("copy").none() = nb::none(),
           nb::sig("def reshape(self, *shape: int | Sequence[int], copy: bool | None = None) -> "
                   "Array"),
           "The same elements in another shape: integers or one sequence of integers, one of\n"
           "which may be -1. A view if the strides allow it. Otherwise, and always with\n"
           "copy=True, a copy in new memory of the same kind and queue, which waits; with\n"
           "copy=False a ValueError. Also ValueError if the numbers of elements differ.")
      .def("ravel", &ravel, nb::sig("def ravel(self) -> Array"),
           "A view with one dimension. ValueError if the strides do not allow that: reshape(-1)\n"
           "copies then.")
      .def("view", &view_as, nb::arg("dtype").none() = nb::none(),
           nb::sig("def view(self, dtype: Any = None) -> Array"),
           "The same bytes as elements of another type. As in NumPy, a type of another size\n"
           "changes the last extent, whose elements must have no gaps. ValueError if the bytes\n"
           "are not a whole number of elements, and, unlike NumPy, if elements would not be\n"
           "aligned or strides not be multiples of the element size.");
}

void bind_functions(nb::module_& module) {
  const auto none = nb::none();
  module.def("permute_dims", &permute, nb::arg("x").none(), nb::arg("axes").none(),
             nb::sig("def permute_dims(x: Array, axes: Sequence[int]) -> Array"),
             "A view with the axes in that order. ValueError unless each axis is named once.");
  module.def(
      "moveaxis", &move_axis, nb::arg("x").none(), nb::arg("source").none(),
      nb::arg("destination").none(),
      nb::sig("def moveaxis(x: Array, source: int | Sequence[int], destination: int | "
              "Sequence[int]) -> Array"),
      "A view with some axes moved to other positions. The remaining axes keep their order.");
  module.def("squeeze", &squeeze, nb::arg("x").none(), nb::arg("axis").none() = none,
             nb::sig("def squeeze(x: Array, axis: int | Sequence[int] | None = None) -> Array"),
             "See Array.squeeze.");
  module.def("expand_dims", &expand, nb::arg("x").none(), nb::kw_only(), nb::arg("axis").none() = 0,
             nb::sig("def expand_dims(x: Array, *, axis: int | Sequence[int] = 0) -> Array"),
             "A view with new axes of size 1 at these positions of the result.");
  module.def("flip", &flip, nb::arg("x").none(), nb::kw_only(), nb::arg("axis").none() = none,
             nb::sig("def flip(x: Array, *, axis: int | Sequence[int] | None = None) -> Array"),
             "A view with the elements in reverse order along these axes; None: all axes.");
  module.def("broadcast_to", &broadcast_to, nb::arg("x").none(), nb::arg("shape").none(),
             nb::sig("def broadcast_to(x: Array, shape: int | Sequence[int]) -> Array"),
             "A read-only view of that shape, by NumPy's broadcasting rules. ValueError if the\n"
             "shapes do not fit.");
  module.def("reshape", &reshape_to, nb::arg("x").none(), nb::arg("shape").none(), nb::kw_only(),
             nb::arg("copy").none() = none,
             nb::sig("def reshape(x: Array, shape: int | Sequence[int], *, copy: bool | None = "
                     "None) -> Array"),
             "See Array.reshape.");
}

}  // namespace

void bind_array_views(nb::module_& module, nb::class_<TypedArray>& bound) {
  bind_axes(bound);
  bind_shape_and_type(bound);
  bind_functions(module);
}

}  // namespace isthmus::python
