#pragma once
// How the elements of an array lie in memory, as the interfaces of array libraries tell it.

#include "common.hpp"

#include <vector>

namespace isthmus::python {

// Numbers that reach beyond any address.
struct too_far {};

using array_numbers = std::vector<std::int64_t>;

struct array_layout {
  array_numbers shape;    // none negative
  array_numbers strides;  // in bytes, as many
  std::int64_t item = 1;  // bytes of an element
};

// In C order, without gaps.
[[nodiscard]] array_numbers dense_strides(const array_numbers& shape, std::int64_t item);
// In C or Fortran order without gaps; where an extent is 1 or less its stride says nothing.
[[nodiscard]] bool is_contiguous(const array_layout& of);
[[nodiscard]] bool is_empty(const array_layout& of) noexcept;

// The box around all elements, counted in bytes from the first one's start; around that one if
// there are none.
struct array_box {
  std::int64_t start = 0;
  std::int64_t nbytes = 0;
};
[[nodiscard]] array_box box_of(const array_layout& what);

// Bytes of an element of type "<f4" and the like; what is not written in the protocol's own way is
// asked of NumPy, as dpctl does. 0 for what is no number and no bool.
[[nodiscard]] std::size_t item_size_of(nb::handle typestr);

}  // namespace isthmus::python
