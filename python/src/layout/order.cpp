// SPDX-License-Identifier: Apache-2.0
#include "layout/order.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "core/errors.hpp"

namespace isthmus::python {
namespace {

using AxesList = std::vector<std::size_t>;

// The elements are contiguous along the last of `axes`.
SharedLayout layout_along(ArrayNumbers shape, const ElementType& type, const AxesList& axes) {
  require_fit(shape, type);
  ArrayNumbers strides;
  strides.resize(shape.size());
  std::int64_t step = type.item;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    strides[*axis] = step;
    step *= std::max<std::int64_t>(shape[*axis], 1);
  }
  return share_layout({{std::move(shape), std::move(strides)}, type.item, &type});
}

AxesList axes_of(std::size_t count) {
  AxesList axes(count);
  std::iota(axes.begin(), axes.end(), std::size_t{0});
  return axes;
}

// The axes with the widest strides first.
AxesList axes_in_memory(const ArrayLayout& layout) {
  auto axes = axes_of(layout.shape.size());
  std::stable_sort(axes.begin(), axes.end(), [&](std::size_t one, std::size_t other) {
    return std::abs(layout.strides[one]) > std::abs(layout.strides[other]);
  });
  return axes;
}

bool is_fortran_only(const ArrayLayout& layout) {
  return layout.is_column_major(layout.item) && !layout.is_contiguous(layout.item);
}

[[noreturn]] void raise_order(nb::handle argument, bool has_prototype) {
  raise_python(PyUnicode_Check(argument.ptr()) != 0 ? PyExc_ValueError : PyExc_TypeError,
               has_prototype ? "order must be 'C', 'F', 'A' or 'K', not %R"
                             : "order must be 'C' or 'F', not %R",
               argument.ptr());
}

bool is_exact_int(nb::handle extent) noexcept { return PyLong_CheckExact(extent.ptr()); }

// Returns false if the general path has to convert or reject the extent.
bool append_extent(nb::handle extent, ArrayNumbers& out) {
  int overflow = 0;
  const long long number =
      is_exact_int(extent) ? PyLong_AsLongLongAndOverflow(extent.ptr(), &overflow) : -1;
  if (number < 0 || overflow != 0) {
    return false;
  }
  out.push_back(number);
  return true;
}

// The same for a short tuple.
bool append_extents(nb::handle shape, ArrayNumbers& out) {
  constexpr Py_ssize_t k_max_fast_ndim = 8;
  bool succeeded =
      PyTuple_CheckExact(shape.ptr()) && PyTuple_GET_SIZE(shape.ptr()) <= k_max_fast_ndim;
  for (Py_ssize_t i = 0; succeeded && i < PyTuple_GET_SIZE(shape.ptr()); ++i) {
    succeeded = append_extent(PyTuple_GET_ITEM(shape.ptr(), i), out);
  }
  return succeeded;
}

}  // namespace

RequestedOrder to_order(nb::handle argument, bool has_prototype) {
  if (!argument.is_valid() || argument.is_none()) {
    return has_prototype ? RequestedOrder::keep : RequestedOrder::c;
  }
  const bool is_letter =
      PyUnicode_Check(argument.ptr()) != 0 && PyUnicode_GET_LENGTH(argument.ptr()) == 1;
  switch (is_letter ? PyUnicode_READ_CHAR(argument.ptr(), 0) : Py_UCS4{0}) {
    case 'C':
    case 'c': return RequestedOrder::c;
    case 'F':
    case 'f': return RequestedOrder::fortran;
    case 'A':
    case 'a':
      if (has_prototype) return RequestedOrder::any;
      break;
    case 'K':
    case 'k':
      if (has_prototype) return RequestedOrder::keep;
      break;
    default: break;
  }
  raise_order(argument, has_prototype);
}

ArrayNumbers to_extents(nb::handle shape) {
  ArrayNumbers extents;
  if (!append_extent(shape, extents) && !append_extents(shape, extents)) {
    extents = to_shape(shape);
  }
  return extents;
}

SharedLayout recent_layout(ArrayNumbers&& shape, const ElementType& type) {
  constexpr std::size_t k_cache_size = 64;
  // Guarded by the interpreter's lock; never destroyed.
  static auto& recent = *new std::array<SharedLayout, k_cache_size>;
  auto hash = static_cast<std::uint64_t>(type.dtype);
  for (const auto extent : shape) {
    hash = (hash ^ static_cast<std::uint64_t>(extent)) * 0x9E3779B97F4A7C15;
  }
  auto& entry = recent[hash >> 58];
  if (!entry || entry->type != &type || !(entry->shape == shape)) {
    entry = dense_layout(std::move(shape), type);
  }
  return entry;
}

SharedLayout fortran_layout(ArrayNumbers shape, const ElementType& type) {
  auto axes = axes_of(shape.size());
  std::reverse(axes.begin(), axes.end());
  return layout_along(std::move(shape), type, axes);
}

SharedLayout ordered_layout(const ArrayLayout& like, const ElementType& type,
                            RequestedOrder order) {
  const bool is_fortran =
      order == RequestedOrder::fortran || (order == RequestedOrder::any && is_fortran_only(like));
  if (is_fortran) {
    return fortran_layout(like.shape, type);
  }
  return order == RequestedOrder::keep ? layout_along(like.shape, type, axes_in_memory(like))
                                       : dense_layout(like.shape, type);
}

}  // namespace isthmus::python
