// SPDX-License-Identifier: Apache-2.0
#include "array_order.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "errors.hpp"

namespace isthmus::python {
namespace {

using AxesList = std::vector<std::size_t>;

// The elements are contiguous along the last of `axes`.
SharedLayout layout_along(ArrayNumbers shape, const ElementType& type, const AxesList& axes) {
  ArrayNumbers strides(shape.size());
  std::int64_t step = type.item;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    strides[*axis] = step;
    if (__builtin_mul_overflow(step, std::max<std::int64_t>(shape[*axis], 1), &step)) {
      raise_python(error_type(ISTHMUS_ERROR_OUT_OF_RANGE),
                   "an array of shape %R and dtype %s does not fit in 63 bits",
                   to_tuple(shape).ptr(), type.name);
    }
  }
  return share_layout(ArrayLayout{std::move(shape), std::move(strides), type.item, &type});
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

bool is_fortrans_alone(const ArrayLayout& layout) {
  return is_dense(layout, ElementOrder::fortran) && !is_dense(layout, ElementOrder::c);
}

[[noreturn]] void refuse_order(nb::handle given, bool has_prototype) {
  raise_python(PyUnicode_Check(given.ptr()) != 0 ? PyExc_ValueError : PyExc_TypeError,
               has_prototype ? "order must be 'C', 'F', 'A' or 'K', not %R"
                             : "order must be 'C' or 'F', not %R",
               given.ptr());
}

bool is_plain(nb::handle extent) noexcept { return PyLong_CheckExact(extent.ptr()); }

// False if the general path has to find out what is wrong.
bool put_plain(nb::handle extent, ArrayNumbers& out) {
  int overflow = 0;
  const long long number =
      is_plain(extent) ? PyLong_AsLongLongAndOverflow(extent.ptr(), &overflow) : -1;
  if (number < 0 || overflow != 0) {
    return false;
  }
  out.push_back(number);
  return true;
}

// The same for a short tuple.
bool put_all_plain(nb::handle shape, ArrayNumbers& out) {
  constexpr Py_ssize_t k_few = 8;
  bool plain = PyTuple_CheckExact(shape.ptr()) && PyTuple_GET_SIZE(shape.ptr()) <= k_few;
  for (Py_ssize_t i = 0; plain && i < PyTuple_GET_SIZE(shape.ptr()); ++i) {
    plain = put_plain(PyTuple_GET_ITEM(shape.ptr(), i), out);
  }
  return plain;
}

}  // namespace

WantedOrder to_order(nb::handle given, bool has_prototype) {
  if (!given.is_valid() || given.is_none()) {
    return has_prototype ? WantedOrder::keep : WantedOrder::c;
  }
  const bool is_letter =
      PyUnicode_Check(given.ptr()) != 0 && PyUnicode_GET_LENGTH(given.ptr()) == 1;
  switch (is_letter ? PyUnicode_READ_CHAR(given.ptr(), 0) : Py_UCS4{0}) {
    case 'C':
    case 'c': return WantedOrder::c;
    case 'F':
    case 'f': return WantedOrder::fortran;
    case 'A':
    case 'a':
      if (has_prototype) return WantedOrder::any;
      break;
    case 'K':
    case 'k':
      if (has_prototype) return WantedOrder::keep;
      break;
    default: break;
  }
  refuse_order(given, has_prototype);
}

ArrayNumbers to_extents(nb::handle shape) {
  ArrayNumbers made;
  if (!put_plain(shape, made) && !put_all_plain(shape, made)) {
    made = to_shape(shape);
  }
  return made;
}

SharedLayout recent_layout(ArrayNumbers&& shape, const ElementType& type) {
  constexpr std::size_t k_kept = 64;
  // Guarded by the interpreter's lock; never destroyed.
  static auto& recent = *new std::array<SharedLayout, k_kept>;
  auto hash = static_cast<std::uint64_t>(type.dtype);
  for (const auto extent : shape) {
    hash = (hash ^ static_cast<std::uint64_t>(extent)) * 0x9E3779B97F4A7C15;
  }
  auto& found = recent[hash >> 58];
  if (!found || found->type != &type || !(found->shape == shape)) {
    found = dense_layout(std::move(shape), type);
  }
  return found;
}

SharedLayout fortran_layout(ArrayNumbers shape, const ElementType& type) {
  auto axes = axes_of(shape.size());
  std::reverse(axes.begin(), axes.end());
  return layout_along(std::move(shape), type, axes);
}

SharedLayout ordered_layout(const ArrayLayout& like, const ElementType& type, WantedOrder order) {
  const bool is_fortran =
      order == WantedOrder::fortran || (order == WantedOrder::any && is_fortrans_alone(like));
  if (is_fortran) {
    return fortran_layout(like.shape, type);
  }
  return order == WantedOrder::keep ? layout_along(like.shape, type, axes_in_memory(like))
                                    : dense_layout(like.shape, type);
}

}  // namespace isthmus::python
