// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies and fills of host-accessible memory. Thread-safe for memory that does not overlap.

#include <isthmus/isthmus.h>

#include <algorithm>
#include <cstddef>
#include <span>

namespace isthmus {

struct Copy2dShape {
  void* destination = nullptr;
  std::size_t destination_pitch = 0;
  const void* source = nullptr;
  std::size_t source_pitch = 0;
  std::size_t width = 0;
  std::size_t height = 0;
};

using CopyRange = isthmus_range_t;

// Ranges of bytes. Their offsets are relative to the two pointers.
struct RangedCopy {
  void* destination = nullptr;
  const void* source = nullptr;
  std::span<const CopyRange> ranges;

  [[nodiscard]] std::size_t bytes() const noexcept {
    std::size_t total = 0;
    for (const auto& range : ranges) {
      total += range.nbytes;
    }
    return total;
  }
  // Number of bytes from the pointer to the highest end of a range.
  [[nodiscard]] std::size_t destination_extent() const noexcept {
    return extent(&CopyRange::destination_offset);
  }
  [[nodiscard]] std::size_t source_extent() const noexcept {
    return extent(&CopyRange::source_offset);
  }

 private:
  [[nodiscard]] std::size_t extent(std::size_t CopyRange::*offset) const noexcept {
    std::size_t end = 0;
    for (const auto& range : ranges) {
      end = std::max(end, range.*offset + range.nbytes);
    }
    return end;
  }
};

struct FillPattern {
  alignas(16) std::byte bytes[16]{};
  std::size_t nbytes = 1;  // 1, 2, 4, 8 or 16
};

// Uses several threads if `nbytes` is at least `k_large_bytes` (share_out.hpp).
void copy_bytes(void* destination, const void* source, std::size_t nbytes) noexcept;
void copy_rows(const Copy2dShape& shape) noexcept;
// Copies on the calling thread alone. `bypass_caches` is set if several threads together copy more
// than the caches hold.
void copy_rows_on_this_thread(const Copy2dShape& shape, bool bypass_caches) noexcept;
void copy_ranges(const RangedCopy& copy) noexcept;
void fill_bytes(void* destination, const FillPattern& pattern, std::size_t nbytes) noexcept;

}  // namespace isthmus
