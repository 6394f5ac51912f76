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
  require_max_ndim(nb::len(all));
  ArrayNumbers shape;
  std::int64_t product = 1;
  std::optional<std::size_t> open;
  for (nb::handle each : nb::borrow<nb::tuple>(all)) {
    const auto extent = to_int64(each, "extent");
    const bool is_open = extent == -1 && !open;
    if (extent < 0 && !is_open) {
      raise_python(PyExc_ValueError, "extents must be 0 or more, and at most one may be -1, not %R",
                   argument.ptr());
    }
    if (!is_open && __builtin_mul_overflow(product, extent, &product)) {
      raise_python(error_type(ISTHMUS_ERROR_OUT_OF_RANGE), "shape %R does not fit in 63 bits",
                   argument.ptr());
    }
    open = is_open ? shape.size() : open;
    shape.push_back(extent);
  }
  if (open && product != 0) {
    shape[*open] = size / product;
    product *= shape[*open];
  }
  if (product != size || (open && shape[*open] < 0)) {
    raise_python(PyExc_ValueError, "an array of %lld elements cannot be reshaped to %R",
                 static_cast<long long>(size), argument.ptr());
  }
  return shape;
}

ArrayLayout broadcast(const ArrayLayout& layout, const ArrayNumbers& shape) {
  auto result = layout.try_broadcast(shape);
  if (!result) {
    raise_python(PyExc_ValueError, "an array of shape %R does not broadcast to the shape %R",
                 to_tuple(layout.shape).ptr(), to_tuple(shape).ptr());
  }
  return {*std::move(result), layout.item, layout.type};
}

}  // namespace isthmus::python
