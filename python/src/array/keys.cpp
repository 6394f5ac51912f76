// SPDX-License-Identifier: Apache-2.0
#include "array/keys.hpp"

#include <isthmus/slicing.hpp>

#include "core/arguments.hpp"

namespace isthmus::python {
namespace {

[[noreturn]] void raise_out_of_bounds(nb::handle index, std::int64_t extent, std::size_t axis) {
  raise_python(PyExc_IndexError, "index %U is out of bounds for axis %zu with size %lld",
               shown_integer(index).ptr(), axis, static_cast<long long>(extent));
}

[[noreturn]] void raise_too_many(std::size_t count, std::size_t ndim) {
  raise_python(PyExc_IndexError,
               "too many indices: the array is %zu-dimensional, but %zu were indexed", ndim, count);
}

[[noreturn]] void raise_no_key(nb::handle key, std::optional<nb::python_error> cause = {}) {
  raise_type_error(cause,
                   "an Array is indexed by integers, slices, None and Ellipsis (...), not by "
                   "%.100s: for other indexing, copy it with to_numpy()",
                   Py_TYPE(key.ptr())->tp_name);
}

using ViewSlicer = isthmus::detail::slicer<dynamic_rank, dynamic_rank>;

void apply_key(ViewSlicer& slicer, const ArrayLayout& layout, PyObject* key) {
  if (PySlice_Check(key) != 0) {
    const auto [start, stop, step] = to_slice(key);
    slicer.apply(slice(start, stop, step));
  } else if (key == Py_Ellipsis) {
    slicer.apply(ellipsis);
  } else if (key == Py_None) {
    slicer.apply(newaxis);
  } else if (PyBool_Check(key) != 0) {
    raise_no_key(key);
  } else {
    const auto axis = slicer.next_axis();
    slicer.apply(to_position(key, layout.shape[axis], axis));
  }
}

}  // namespace

std::int64_t to_position(nb::handle index, std::int64_t extent, std::size_t axis) {
  if (!PyLong_CheckExact(index.ptr())) {
    std::optional<nb::python_error> cause;
    const nb::object number = as_integer(index, &cause);
    if (!number.is_valid()) {
      raise_no_key(index, std::move(cause));
    }
    return to_position(number, extent, axis);
  }
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  const auto position = number < 0 ? number + extent : number;
  if (overflow != 0 || position < 0 || position >= extent) [[unlikely]] {
    raise_out_of_bounds(index, extent, axis);
  }
  return position;
}

std::optional<std::size_t> element_at(const TypedArray& array, const KeyList& keys) {
  const auto& layout = *array.layout;
  if (keys.size() != layout.shape.size()) {
    return {};
  }
  for (PyObject* key : keys) {
    const bool is_index =
        PyLong_CheckExact(key) || (PyIndex_Check(key) != 0 && PyBool_Check(key) == 0);
    if (!is_index) {
      return {};
    }
  }
  std::size_t offset = array.offset;
  std::size_t axis = 0;
  for (PyObject* key : keys) {
    offset +=
        static_cast<std::size_t>(to_position(key, layout.shape[axis], axis) * layout.strides[axis]);
    ++axis;
  }
  return offset;
}

nb::object view_at(nb::handle object, const TypedArray& array, const KeyList& keys) {
  const auto& layout = *array.layout;
  const auto ndim = layout.shape.size();
  std::size_t ellipses = 0, new_axes = 0, slices = 0;
  for (PyObject* key : keys) {
    ellipses += key == Py_Ellipsis ? 1 : 0;
    new_axes += key == Py_None ? 1 : 0;
    slices += PySlice_Check(key) != 0 ? std::size_t{1} : std::size_t{0};
  }
  const auto axes = keys.size() - ellipses - new_axes;
  const auto indices = axes - slices;
  if (ellipses > 1) {
    raise_python(PyExc_IndexError, "an index can have only one ...");
  }
  if (axes > ndim) {
    raise_too_many(axes, ndim);
  }
  if (ndim + new_axes > max_axes) {
    raise_python(PyExc_IndexError, "an array has at most %zu dimensions, not %zu", max_axes,
                 ndim + new_axes);
  }
  ArrayLayout view{{}, layout.item, layout.type};
  ViewSlicer slicer{layout, view, ndim + new_axes - indices, axes};
  for (PyObject* key : keys) {
    apply_key(slicer, layout, key);
  }
  slicer.finish();
  return make_array_view(object, array, std::move(view));
}

}  // namespace isthmus::python
