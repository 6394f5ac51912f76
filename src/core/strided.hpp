// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies of N-dimensional blocks: runs of bytes at regular distances. The distances may differ
// between the two sides. Thread-safe for memory that does not overlap.

#include <array>
#include <cstddef>
#include <vector>

#include "core/bytes.hpp"

namespace isthmus {

enum class Side { destination, source };

struct StridedDimension {
  std::size_t count = 1;
  std::size_t destination_stride = 0;  // bytes
  std::size_t source_stride = 0;       // 0: the same bytes repeatedly

  [[nodiscard]] std::size_t stride(Side side) const noexcept {
    return side == Side::source ? source_stride : destination_stride;
  }
};

struct StridedCopy {
  static constexpr std::size_t k_max_dimensions = 8;

  void* destination = nullptr;
  const void* source = nullptr;
  std::size_t width = 0;  // contiguous bytes on both sides
  // Outermost first. One dimension more than callers may pass, for copies that are divided.
  std::array<StridedDimension, k_max_dimensions + 1> dimensions{};
  std::size_t rank = 0;

  [[nodiscard]] std::size_t runs() const noexcept;
  [[nodiscard]] std::size_t bytes() const noexcept { return width * runs(); }
  // Number of bytes from the first byte to the end of the last one, on one side.
  [[nodiscard]] std::size_t extent(Side side) const noexcept;

  // Whether the block has at most one dimension and its rows do not overlap in the source.
  [[nodiscard]] bool is_rows() const noexcept {
    return rank == 0 || (rank == 1 && dimensions[0].source_stride >= width);
  }

  void append(const StridedDimension& inner) noexcept { dimensions.at(rank++) = inner; }
  void remove(std::size_t index) noexcept;
};

// Returns a copy of the same bytes with as few dimensions as possible, sorted so that the largest
// strides on side `side` are outermost.
[[nodiscard]] StridedCopy simplified(StridedCopy copy, Side side) noexcept;

// Returns the runs of the copy, with offsets from its two pointers.
[[nodiscard]] std::vector<CopyRange> list_runs(const StridedCopy& copy);

// Copies on the host.
void copy_strided(const StridedCopy& copy) noexcept;

}  // namespace isthmus
