// SPDX-License-Identifier: Apache-2.0
// Views of Array: with other axes, with another shape, with another type.

#include <numeric>

#include "array/array.hpp"
#include "array/bindings.hpp"
#include "core/arguments.hpp"
#include "layout/axes.hpp"

namespace isthmus::python {
namespace {

// -- axes -----------------------------------------------------------------------------------------

ArrayLayout empty_layout_like(const TypedLayout& layout) { return {{}, layout.item, layout.type}; }

nb::object make_view(nb::handle object, ArrayLayout layout) {
  return make_array_view(object, require_array(object, "x"), std::move(layout));
}

// `axes` has each axis once.
nb::object permuted(nb::handle object, const ArrayNumbers& axes) {
  const auto& layout = *require_array(object, "x").layout;
  return make_view(object, {layout.permuted(axes), layout.item, layout.type});
}

// The cached reverse of a layout; for a reversed layout, the original.
SharedLayout cached_reverse(const SharedLayout& layout) {
  if (layout->reverse_of != nullptr) {
    return SharedLayout{layout->reverse_of};
  }
  if (!layout->reversed) {
    layout->reversed = share_layout({layout->transposed(), layout->item, layout->type});
    layout->reversed->reverse_of = layout.get();
  }
  return layout->reversed;
}

nb::object reversed_axes(nb::handle object) {
  const auto& array = require_array(object, "x");
  return make_array_view(object, array, cached_reverse(array.layout), array.offset);
}

ArrayNumbers axes_in_order(std::size_t ndim) {
  ArrayNumbers axes;
  axes.resize(ndim);
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
  const auto source_axes = to_axes(source, ndim);
  const auto destination_axes = to_axes(destination, ndim);
  if (source_axes.size() != destination_axes.size()) {
    raise_python(PyExc_ValueError, "cannot move %zu axes to %zu positions: %R to %R",
                 source_axes.size(), destination_axes.size(), source.ptr(), destination.ptr());
  }
  ArrayNumbers order;
  order.resize(ndim);
  std::fill(order.begin(), order.end(), -1);
  for (std::size_t i = 0; i < source_axes.size(); ++i) {
    order[static_cast<std::size_t>(destination_axes[i])] = source_axes[i];
  }
  std::int64_t next = 0;
  for (auto& each : order) {
    while (each < 0 &&
           std::find(source_axes.begin(), source_axes.end(), next) != source_axes.end()) {
      ++next;
    }
    each = each < 0 ? next++ : each;
  }
  return permuted(object, order);
}

nb::object squeeze(nb::handle object, nb::handle argument) {
  const auto& source_layout = *require_array(object, "x").layout;
  const auto axes =
      argument.is_none() ? ArrayNumbers{} : to_axes(argument, source_layout.shape.size());
  auto layout = empty_layout_like(source_layout);
  for (std::size_t i = 0; i < source_layout.shape.size(); ++i) {
    const bool is_named =
        std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(i)) != axes.end();
    if (is_named && source_layout.shape[i] != 1) {
      raise_python(PyExc_ValueError,
                   "axis %zu has size %lld: only an axis of size 1 can be removed", i,
                   static_cast<long long>(source_layout.shape[i]));
    }
    if (is_named || (argument.is_none() && source_layout.shape[i] == 1)) {
      continue;
    }
    layout.shape.push_back(source_layout.shape[i]);
    layout.strides.push_back(source_layout.strides[i]);
  }
  return make_view(object, std::move(layout));
}

nb::object expand(nb::handle object, nb::handle argument) {
  const auto& source_layout = *require_array(object, "x").layout;
  const nb::object all = to_axis_tuple(argument);
  const auto ndim = source_layout.shape.size() + nb::len(all);
  require_max_ndim(ndim);
  auto axes = to_axes(all, ndim);
  std::sort(axes.begin(), axes.end());
  ArrayLayout layout = source_layout;
  for (const auto axis : axes) {
    layout.shape.insert(static_cast<std::size_t>(axis), 1);
    layout.strides.insert(static_cast<std::size_t>(axis), 0);
  }
  return make_view(object, std::move(layout));
}

nb::object flip(nb::handle object, nb::handle argument) {
  const auto& source_layout = *require_array(object, "x").layout;
  const auto ndim = source_layout.shape.size();
  ArrayLayout layout = source_layout;
  for (const auto each : argument.is_none() ? axes_in_order(ndim) : to_axes(argument, ndim)) {
    const auto axis = static_cast<std::size_t>(each);
    layout.strides[axis] = -source_layout.strides[axis];
    layout.offset +=
        source_layout.size == 0 ? 0 : (source_layout.shape[axis] - 1) * source_layout.strides[axis];
  }
  return make_view(object, std::move(layout));
}

nb::object broadcast_to(nb::handle object, nb::handle shape) {
  const auto& array = require_array(object, "x");
  auto layout = broadcast(*array.layout, to_shape(shape));
  nb::object view;
  try {
    view = make_view(object, std::move(layout));
  } catch (const TooFar&) {
    raise_python(error_type(ISTHMUS_ERROR_OUT_OF_RANGE), "shape %R does not fit in 63 bits",
                 shape.ptr());
  }
  typed_array_of(view)->is_locked = true;
  return view;
}

// -- shape ----------------------------------------------------------------------------------------

enum class Copying { if_needed, always, never };

Copying to_copying(nb::handle copy) {
  return copy.is_none()          ? Copying::if_needed
         : to_flag(copy, "copy") ? Copying::always
                                 : Copying::never;
}

// The shape has the same number of elements.
nb::object with_shape(nb::handle object, ArrayNumbers shape, Copying copying) {
  const auto& array = require_array(object, "x");
  const auto& old = *array.layout;
  if (copying == Copying::always) {
    return with_shape(copy_of_array(object), std::move(shape), Copying::never);
  }
  if (old.is_c_dense) {
    return make_array_view(object, array, dense_layout(std::move(shape), *old.type), array.offset);
  }
  if (auto layout = old.try_reshape(shape, old.item)) {
    return make_view(object, {*std::move(layout), old.item, old.type});
  }
  if (copying == Copying::never) {
    raise_python(PyExc_ValueError,
                 "reshaping an array of shape %R and strides %R to the shape %R needs a copy: pass "
                 "copy=None to allow it",
                 to_tuple(old.shape).ptr(), to_tuple(old.strides).ptr(), to_tuple(shape).ptr());
  }
  return with_shape(copy_of_array(object), std::move(shape), Copying::never);
}

nb::object reshaped(nb::handle object, nb::handle argument, Copying copying) {
  return with_shape(object, to_shape_of(argument, require_array(object, "x").layout->size),
                    copying);
}

nb::object reshape(nb::handle object, const nb::args& arguments, nb::handle copy) {
  return reshaped(object, arguments.size() == 1 ? nb::object{arguments[0]} : nb::object{arguments},
                  to_copying(copy));
}

nb::object reshape_to(nb::handle object, nb::handle shape, nb::handle copy) {
  return reshaped(object, shape, to_copying(copy));
}

nb::object ravel(nb::handle object) { return reshaped(object, nb::int_(-1), Copying::never); }

// -- type -----------------------------------------------------------------------------------------

// The layout for elements of another type, by NumPy's rules: another element size changes the last
// extent, whose elements must have no gaps.
ArrayLayout retyped(const TypedLayout& layout, const ElementType& type) {
  ArrayLayout result = layout;
  result.type = &type;
  result.item = type.item;
  if (layout.item == type.item) {
    return result;
  }
  if (result.shape.empty()) {
    raise_python(
        PyExc_ValueError,
        "an array of 0 dimensions cannot be viewed as %s, whose elements have %d bytes, not %lld",
        type.name, type.item, static_cast<long long>(layout.item));
  }
  auto& last = result.shape.back();
  if (last != 1 && layout.size != 0 && result.strides.back() != layout.item) {
    raise_python(
        PyExc_ValueError,
        "a view as %s needs a contiguous last axis, but its elements lie %lld bytes apart: "
        "copy the array first, as in x.copy().view(dtype)",
        type.name, static_cast<long long>(result.strides.back()));
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
  result.strides.back() = type.item;
  return result;
}

void require_aligned(const TypedArray& array, const ArrayLayout& layout) {
  const auto& type = *layout.type;
  const auto first =
      reinterpret_cast<std::uintptr_t>(info_of(buffer_in(array)).pointer) + array.offset;
  if (first % type.alignment != 0) {
    raise_python(
        PyExc_ValueError,
        "the first element lies at %p, which is not a multiple of %d bytes, the alignment of %s: "
        "copy the array first, as in x.copy().view(dtype)",
        reinterpret_cast<void*>(first), type.alignment, type.name);
  }
  for (std::size_t i = 0; i < layout.shape.size(); ++i) {
    if (layout.shape[i] > 1 && layout.strides[i] % layout.item != 0) {
      raise_python(PyExc_ValueError,
                   "elements along axis %zu lie %lld bytes apart, which is not a multiple of %d, "
                   "the element size of %s: copy the array first, as in x.copy().view(dtype)",
                   i, static_cast<long long>(layout.strides[i]), type.item, type.name);
    }
  }
}

nb::object view_as(nb::handle object, nb::handle dtype) {
  const auto& array = require_array(object, "x");
  auto layout =
      retyped(*array.layout, dtype.is_none() ? *array.layout->type : to_element_type(dtype));
  if (array.layout->size != 0 && layout.type != array.layout->type) {
    require_aligned(array, layout);
  }
  drop_idle_strides(layout);
  return make_view(object, std::move(layout));
}

void bind_axes(nb::class_<TypedArray>& bound) {
  bound
      .def_prop_ro("T", &reversed_axes, nb::sig("def T(self) -> Array"),
                   "A view with the axes in reverse order.")
      .def_prop_ro("mT", &matrix_transpose, nb::sig("def mT(self) -> Array"),
                   "A view with the last two axes swapped; ValueError for fewer than 2 dimensions.")
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
           "A view without the axes of size 1: all of them, or those in `axis` (ValueError for\n"
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
           "copy=False a ValueError. Raises ValueError too if the numbers of elements differ.")
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
             "shapes are incompatible.");
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
