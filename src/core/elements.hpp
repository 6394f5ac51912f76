#pragma once
// A row of elements at one distance, of either sign, copied by the host.

#include <cstddef>

namespace isthmus {

struct element_row {
  std::byte* to = nullptr;
  std::ptrdiff_t to_stride = 0;
  const std::byte* from = nullptr;
  std::ptrdiff_t from_stride = 0;
  std::size_t count = 0;
};

// Whether elements of so many bytes lie one after the other.
[[nodiscard]] constexpr bool is_packed(std::ptrdiff_t stride, std::size_t nbytes) noexcept {
  return stride == static_cast<std::ptrdiff_t>(nbytes);
}

// Of `nbytes` each, which need not be aligned. Pre: no byte that is written is read.
void copy_elements(const element_row& row, std::size_t nbytes) noexcept;

}  // namespace isthmus
