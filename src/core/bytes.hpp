#pragma once
// Copies and fills of memory that the host can touch.

#include <cstddef>

namespace isthmus {

struct copy_2d_shape {
  void* destination = nullptr;
  std::size_t destination_pitch = 0;
  const void* source = nullptr;
  std::size_t source_pitch = 0;
  std::size_t width = 0;
  std::size_t height = 0;
};

struct fill_pattern {
  alignas(16) std::byte bytes[16]{};
  std::size_t nbytes = 1;  // 1, 2, 4, 8 or 16
};

// By several threads from `k_large_bytes` on (share_out.hpp).
void copy_bytes(void* destination, const void* source, std::size_t nbytes) noexcept;
void copy_rows(const copy_2d_shape& shape) noexcept;
// Pre: `nbytes` is a multiple of the pattern's.
void fill_bytes(void* destination, const fill_pattern& pattern, std::size_t nbytes) noexcept;

}  // namespace isthmus
