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

using axes_list = std::vector<std::size_t>;

// The elements are contiguous along the last of `axes`.
shared_layout layout_along(array_numbers shape, const element_type& type, const axes_list& axes) {
  array_numbers strides(shape.size());
  std::int64_t step = type.item;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    strides[*axis] = step;
    if (__builtin_mul_overflow(step, std::max<std::int64_t>(shape[*axis], 1), &step)) {
      raise_python(error_type(ISTHMUS_ERROR_OUT_OF_RANGE),
                   "an array of shape %R and dtype %s does not fit in 63 bits",
                   to_tuple(shape).ptr(), type.name);
    }
  }
  return share_layout(array_layout{std::move(shape), std::move(strides), type.item, &type});
}

axes_list axes_of(std::size_t count) {
  axes_list axes(count);
  std::iota(axes.begin(), axes.end(), std::size_t{0});
  return axes;
}

// The axes with the widest strides first.
axes_list axes_in_memory(const array_layout& of) {
  auto axes = axes_of(of.shape.size());
  std::stable_sort(axes.begin(), axes.end(), [&](std::size_t one, std::size_t other) {
    return std::abs(of.strides[one]) > std::abs(of.strides[other]);
  });
  return axes;
}

bool is_fortrans_alone(const array_layout& of) {
  return is_dense(of, element_order::fortran) && !is_dense(of, element_order::c);
}

[[noreturn]] void refuse_order(nb::handle given, bool has_prototype) {
  raise_python(PyUnicode_Check(given.ptr()) != 0 ? PyExc_ValueError : PyExc_TypeError,
               has_prototype ? "order must be 'C', 'F', 'A' or 'K', not %R"
                             : "order must be 'C' or 'F', not %R",
               given.ptr());
}

bool is_plain(nb::handle extent) noexcept { return PyLong_CheckExact(extent.ptr()); }

// False if the general path has to find out what is wrong.
bool put_plain(nb::handle extent, array_numbers& into) {
  int overflow = 0;
  const long long number =
      is_plain(extent) ? PyLong_AsLongLongAndOverflow(extent.ptr(), &overflow) : -1;
  if (number < 0 || overflow != 0) {
    return false;
  }
  into.push_back(number);
  return true;
}

// The same for a short tuple.
bool put_all_plain(nb::handle shape, array_numbers& into) {
  constexpr Py_ssize_t k_few = 8;
  bool plain = PyTuple_CheckExact(shape.ptr()) && PyTuple_GET_SIZE(shape.ptr()) <= k_few;
  for (Py_ssize_t i = 0; plain && i < PyTuple_GET_SIZE(shape.ptr()); ++i) {
    plain = put_plain(PyTuple_GET_ITEM(shape.ptr(), i), into);
  }
  return plain;
}

}  // namespace

wanted_order to_order(nb::handle given, bool has_prototype) {
  if (!given.is_valid() || given.is_none()) {
    return has_prototype ? wanted_order::keep : wanted_order::c;
  }
  const bool is_letter =
      PyUnicode_Check(given.ptr()) != 0 && PyUnicode_GET_LENGTH(given.ptr()) == 1;
  switch (is_letter ? PyUnicode_READ_CHAR(given.ptr(), 0) : Py_UCS4{0}) {
    case 'C':
    case 'c': return wanted_order::c;
    case 'F':
    case 'f': return wanted_order::fortran;
    case 'A':
    case 'a':
      if (has_prototype) return wanted_order::any;
      break;
    case 'K':
    case 'k':
      if (has_prototype) return wanted_order::keep;
      break;
    default: break;
  }
  refuse_order(given, has_prototype);
}

array_numbers to_extents(nb::handle shape) {
  array_numbers made;
  if (!put_plain(shape, made) && !put_all_plain(shape, made)) {
    made = to_shape(shape);
  }
  return made;
}

shared_layout recent_layout(array_numbers&& shape, const element_type& type) {
  constexpr std::size_t k_kept = 64;
  // Guarded by the interpreter's lock; never destroyed.
  static auto& recent = *new std::array<shared_layout, k_kept>;
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

shared_layout fortran_layout(array_numbers shape, const element_type& type) {
  auto axes = axes_of(shape.size());
  std::reverse(axes.begin(), axes.end());
  return layout_along(std::move(shape), type, axes);
}

shared_layout ordered_layout(const array_layout& like, const element_type& type,
                             wanted_order order) {
  const bool is_fortran =
      order == wanted_order::fortran || (order == wanted_order::any && is_fortrans_alone(like));
  if (is_fortran) {
    return fortran_layout(like.shape, type);
  }
  return order == wanted_order::keep ? layout_along(like.shape, type, axes_in_memory(like))
                                     : dense_layout(like.shape, type);
}

}  // namespace isthmus::python
