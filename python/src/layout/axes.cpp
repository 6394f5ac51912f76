// SPDX-License-Identifier: Apache-2.0
#include "layout/axes.hpp"

#include "core/arguments.hpp"
#include "core/errors.hpp"

namespace isthmus::python {
namespace {

[[noreturn]] void raise_axis(nb::handle axis, std::size_t ndim) {
  const auto numpy = nb::module_::import_("numpy");
  const nb::object module =
      nb::hasattr(numpy, "exceptions") ? nb::object(numpy.attr("exceptions")) : nb::object(numpy);
  const nb::object type = module.attr("AxisError");
  raise_python(type.ptr(), "axis %R is out of bounds for an array of %zu dimensions", axis.ptr(),
               ndim);
}

// An integer or a sequence, as a tuple.
nb::object to_list(nb::handle argument, const char* must_be) {
  if (PyTuple_CheckExact(argument.ptr())) {
    return nb::borrow(argument);
  }
  std::optional<nb::python_error> cause;
  if (as_integer(argument, &cause).is_valid()) {
    return nb::make_tuple(nb::borrow(argument));
  }
  return to_tuple_of(argument, must_be, std::move(cause));
}

// Copies the shape and strides of the dimensions with an extent other than 1: only these matter.
void drop_unit_axes(const ArrayLayout& layout, ArrayNumbers& shape, ArrayNumbers& strides) {
  for (std::size_t i = 0; i < layout.shape.size(); ++i) {
    if (layout.shape[i] != 1) {
      shape.push_back(layout.shape[i]);
      strides.push_back(layout.strides[i]);
    }
  }
}

// Whether the dimensions [begin, end) can be merged into one, judged by their strides.
bool is_contiguous_run(const ArrayNumbers& shape, const ArrayNumbers& strides, std::size_t begin,
                       std::size_t end) {
  for (auto i = begin; i + 1 < end; ++i) {
    if (strides[i] != shape[i + 1] * strides[i + 1]) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::size_t to_axis(nb::handle argument, std::size_t ndim) {
  const auto index = to_integer(argument, "axis");
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  const auto count = static_cast<long long>(ndim);
  const auto position = number < 0 ? number + count : number;
  if (overflow != 0 || position < 0 || position >= count) {
    raise_axis(index, ndim);
  }
  return static_cast<std::size_t>(position);
}

nb::object to_axis_tuple(nb::handle argument) {
  return to_list(argument, "axes must be an integer or a sequence of integers");
}

ArrayNumbers to_axes(nb::handle argument, std::size_t ndim) {
  const nb::object all = to_axis_tuple(argument);
  ArrayNumbers axes;
  std::uint64_t seen = 0;
  for (nb::handle each : nb::borrow<nb::tuple>(all)) {
    const auto axis = to_axis(each, ndim);
    const auto bit = std::uint64_t{1} << axis % 64;
    if ((seen & bit) != 0) {
      raise_python(PyExc_ValueError, "axes %R contain an axis more than once", argument.ptr());
    }
    seen |= bit;
    axes.push_back(static_cast<std::int64_t>(axis));
  }
  return axes;
}

ArrayNumbers to_permutation(nb::handle argument, std::size_t ndim) {
  const nb::object all = to_axis_tuple(argument);
  if (nb::len(all) != ndim) {
    raise_python(PyExc_ValueError, "%zu axes for an array of %zu dimensions: pass each axis once",
                 nb::len(all), ndim);
  }
  return to_axes(all, ndim);
}

ArrayNumbers to_shape_of(nb::handle argument, std::int64_t size) {
  const nb::object all = to_list(argument, "shape must be an integer or a sequence of integers");
  ArrayNumbers shape;
  std::int64_t product = 1;
  std::int64_t* open = nullptr;
  shape.reserve(nb::len(all));
  for (nb::handle each : nb::borrow<nb::tuple>(all)) {
    auto extent = to_int64(each, "extent");
    const bool is_open = extent == -1 && open == nullptr;
    if (extent < 0 && !is_open) {
      raise_python(PyExc_ValueError, "extents must be 0 or more, and at most one may be -1, not %R",
                   argument.ptr());
    }
    if (!is_open && __builtin_mul_overflow(product, extent, &product)) {
      raise_python(error_type(ISTHMUS_ERROR_OUT_OF_RANGE), "shape %R does not fit in 63 bits",
                   argument.ptr());
    }
    shape.push_back(extent);
    open = is_open ? &shape.back() : open;
  }
  if (open != nullptr && product != 0) {
    *open = size / product;
    product *= *open;
  }
  if (product != size || (open != nullptr && *open < 0)) {
    raise_python(PyExc_ValueError, "an array of %lld elements cannot be reshaped to %R",
                 static_cast<long long>(size), argument.ptr());
  }
  if (shape.size() > PyBUF_MAX_NDIM) {
    raise_python(PyExc_ValueError, "an array has at most %d dimensions, not %zu", PyBUF_MAX_NDIM,
                 shape.size());
  }
  return shape;
}

// Groups of old and new dimensions with the same number of elements are matched. Each group of old
// dimensions must be mergeable into one.
bool find_strides(const ArrayLayout& layout, const ArrayNumbers& shape, ArrayNumbers& strides) {
  ArrayNumbers old_shape, old_strides;
  drop_unit_axes(layout, old_shape, old_strides);
  strides.assign(shape.size(), layout.item);
  std::size_t new_begin = 0, old_begin = 0;
  while (new_begin < shape.size() && old_begin < old_shape.size()) {
    auto new_end = new_begin + 1, old_end = old_begin + 1;
    auto new_count = shape[new_begin], old_count = old_shape[old_begin];
    while (new_count != old_count) {
      if (new_count < old_count) {
        new_count *= shape[new_end++];
      } else {
        old_count *= old_shape[old_end++];
      }
    }
    if (!is_contiguous_run(old_shape, old_strides, old_begin, old_end)) {
      return false;
    }
    strides[new_end - 1] = old_strides[old_end - 1];
    for (auto i = new_end - 1; i > new_begin; --i) {
      strides[i - 1] = strides[i] * shape[i];
    }
    new_begin = new_end;
    old_begin = old_end;
  }
  const auto last = new_begin == 0 ? layout.item : strides[new_begin - 1];
  std::fill(strides.begin() + new_begin, strides.end(), last);
  return true;
}

ArrayLayout broadcast(const ArrayLayout& layout, ArrayNumbers shape) {
  const auto extra = shape.size() - layout.shape.size();
  bool fits = shape.size() >= layout.shape.size();
  ArrayNumbers strides(shape.size());
  for (std::size_t i = 0; fits && i < layout.shape.size(); ++i) {
    const bool is_same = layout.shape[i] == shape[extra + i];
    fits = is_same || layout.shape[i] == 1;
    strides[extra + i] = is_same ? layout.strides[i] : 0;
  }
  if (!fits) {
    raise_python(PyExc_ValueError, "an array of shape %R does not broadcast to the shape %R",
                 to_tuple(layout.shape).ptr(), to_tuple(shape).ptr());
  }
  return {std::move(shape), std::move(strides), layout.item, layout.type};
}

}  // namespace isthmus::python
