// SPDX-License-Identifier: Apache-2.0
#pragma once
// Iterates over the rows of a block. Computes the offset of the next row on each side without a
// division. Not thread-safe.

#include <array>
#include <cstddef>
#include <span>

namespace isthmus {

struct MoveDimension {
  std::size_t count;
  std::ptrdiff_t destination_stride;  // strides in bytes
  std::ptrdiff_t source_stride;       // 0: the same bytes repeatedly
};

template <std::size_t MaxDimensions>
class RowWalk {
 public:
  // Iterates over the dimensions outside the row, starting at row `row`. There are at most
  // `MaxDimensions` dimensions, and they outlive this object.
  RowWalk(std::span<const MoveDimension> outer, std::size_t row) noexcept : outer_{outer} {
    for (std::size_t i = outer_.size(); i-- > 0;) {
      const auto& dimension = outer_[i];
      index_[i] = row % dimension.count;
      row /= dimension.count;
      destination_offset_ += static_cast<std::ptrdiff_t>(index_[i]) * dimension.destination_stride;
      source_offset_ += static_cast<std::ptrdiff_t>(index_[i]) * dimension.source_stride;
    }
  }
  // Offsets of the current row from the first one.
  [[nodiscard]] std::ptrdiff_t destination_offset() const noexcept { return destination_offset_; }
  [[nodiscard]] std::ptrdiff_t source_offset() const noexcept { return source_offset_; }

  void next() noexcept {
    for (std::size_t i = outer_.size(); i-- > 0;) {
      const auto& dimension = outer_[i];
      destination_offset_ += dimension.destination_stride;
      source_offset_ += dimension.source_stride;
      if (++index_[i] != dimension.count) {
        return;
      }
      index_[i] = 0;
      destination_offset_ -=
          static_cast<std::ptrdiff_t>(dimension.count) * dimension.destination_stride;
      source_offset_ -= static_cast<std::ptrdiff_t>(dimension.count) * dimension.source_stride;
    }
  }

 private:
  std::span<const MoveDimension> outer_;
  std::array<std::size_t, MaxDimensions> index_;  // only the first `outer_.size()` are initialized
  std::ptrdiff_t destination_offset_ = 0;
  std::ptrdiff_t source_offset_ = 0;
};

}  // namespace isthmus
