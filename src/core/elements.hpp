// SPDX-License-Identifier: Apache-2.0
#pragma once
// Host copies of a row of elements at a constant distance, which may be negative. Thread-safe for
// memory that does not overlap.

#include <cstddef>

namespace isthmus {

struct ElementRow {
  std::byte* destination = nullptr;
  std::ptrdiff_t destination_stride = 0;
  const std::byte* source = nullptr;
  std::ptrdiff_t source_stride = 0;
  std::size_t count = 0;
};

// Whether elements of `nbytes` each lie next to each other.
[[nodiscard]] constexpr bool is_packed(std::ptrdiff_t stride, std::size_t nbytes) noexcept {
  return stride == static_cast<std::ptrdiff_t>(nbytes);
}

// Copies elements of `nbytes` each, which need not be aligned. Source and destination must
// not overlap.
void copy_elements(const ElementRow& row, std::size_t nbytes) noexcept;

}  // namespace isthmus
