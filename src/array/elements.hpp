#pragma once
// A row of elements at one distance, of either sign, moved by the host.

#include <cstddef>

#include "array/conversion.hpp"

namespace isthmus {

struct element_row {
  std::byte* to = nullptr;
  std::ptrdiff_t to_stride = 0;
  const std::byte* from = nullptr;
  std::ptrdiff_t from_stride = 0;
  std::size_t count = 0;
};

// Of `nbytes` each. Pre: no element that is written is read.
void copy_elements(const element_row& row, std::size_t nbytes) noexcept;

// Pre: the same; `to_bytes` are those of an element that is made.
void convert_elements(const element_row& row, const conversion& how, std::size_t to_bytes) noexcept;

}  // namespace isthmus
