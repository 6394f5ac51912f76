// SPDX-License-Identifier: Apache-2.0
#include "array/keys.hpp"

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

bool consumes_axis(PyObject* key) noexcept { return key != Py_Ellipsis && key != Py_None; }

// Builds a view by applying the items of a key one by one.
class ViewMaker {
 public:
  explicit ViewMaker(const TypedArray& array) : array_{array}, offset_{array.offset} {
    layout_.item = array.layout->item;
    layout_.type = array.layout->type;
  }

  void apply_key(PyObject* key, std::size_t skipped);
  void keep_remaining_axes() { keep_axes(array_.layout->shape.size() - axis_); }
  [[nodiscard]] nb::object finish(nb::handle object) {
    return make_array_view(object, array_, share_layout(std::move(layout_)), offset_);
  }

 private:
  [[nodiscard]] std::int64_t extent() const { return array_.layout->shape[axis_]; }
  [[nodiscard]] std::int64_t stride() const { return array_.layout->strides[axis_]; }
  void add(std::int64_t extent, std::int64_t stride) {
    layout_.shape.push_back(extent);
    layout_.strides.push_back(stride);
  }
  void keep_axes(std::size_t axes) {
    for (; axes > 0; --axes, ++axis_) {
      add(extent(), stride());
    }
  }
  void apply_slice(PyObject* key);
  void apply_index(PyObject* key);
  void move_by(std::int64_t steps) { offset_ += static_cast<std::size_t>(steps * stride()); }

  const TypedArray& array_;
  ArrayLayout layout_{};
  std::size_t offset_;
  std::size_t axis_ = 0;  // the next axis of `array_`
};

// The stride of an extent of 1 or less has no meaning, so the step may have any size.
void ViewMaker::apply_slice(PyObject* key) {
  auto [start, stop, step] = to_slice(key);
  const auto length = PySlice_AdjustIndices(extent(), &start, &stop, step);
  if (length != 0) {
    move_by(start);
  }
  add(length, length > 1 ? step * stride() : stride());
  ++axis_;
}

void ViewMaker::apply_index(PyObject* key) {
  if (PyBool_Check(key) != 0) {
    raise_no_key(key);
  }
  move_by(to_position(key, extent(), axis_));
  ++axis_;
}

// `skipped`: the number of axes that ... stands for.
void ViewMaker::apply_key(PyObject* key, std::size_t skipped) {
  if (PySlice_Check(key) != 0) {
    apply_slice(key);
  } else if (key == Py_Ellipsis) {
    keep_axes(skipped);
  } else if (key == Py_None) {
    add(1, 0);
  } else {
    apply_index(key);
  }
}

void require_max_ndim(std::size_t ndim) {
  if (ndim > PyBUF_MAX_NDIM) {
    raise_python(PyExc_IndexError, "an array has at most %d dimensions, not %zu", PyBUF_MAX_NDIM,
                 ndim);
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
  const auto ndim = array.layout->shape.size();
  std::size_t axes = 0, ellipses = 0;
  for (PyObject* key : keys) {
    axes += consumes_axis(key) ? std::size_t{1} : std::size_t{0};
    ellipses += key == Py_Ellipsis ? 1 : 0;
  }
  if (ellipses > 1) {
    raise_python(PyExc_IndexError, "an index can have only one ...");
  }
  if (axes > ndim) {
    raise_too_many(axes, ndim);
  }
  require_max_ndim(ndim + keys.size() - ellipses - axes);
  ViewMaker view{array};
  for (PyObject* key : keys) {
    view.apply_key(key, ndim - axes);
  }
  view.keep_remaining_axes();
  return view.finish(object);
}

}  // namespace isthmus::python
