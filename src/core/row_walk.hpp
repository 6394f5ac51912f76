// SPDX-License-Identifier: Apache-2.0
#pragma once
// Iterates over the rows of a block: where the next row begins on each side, computed by additions
// alone. Not thread-safe.

#include <array>
#include <cstddef>
#include <span>

namespace isthmus {

struct MoveDimension {
  std::size_t count;
  std::ptrdiff_t to;    // strides in bytes
  std::ptrdiff_t from;  // 0: the same bytes repeatedly
};

template <std::size_t Most>
class RowWalk {
 public:
  // Iterates over the dimensions outside the row, starting at row `row`. There are at most `Most`
  // dimensions, and they outlive this object.
  RowWalk(std::span<const MoveDimension> outer, std::size_t row) noexcept : outer_{outer} {
    for (std::size_t i = outer_.size(); i-- > 0;) {
      const auto& along = outer_[i];
      index_[i] = row % along.count;
      row /= along.count;
      to_ += static_cast<std::ptrdiff_t>(index_[i]) * along.to;
      from_ += static_cast<std::ptrdiff_t>(index_[i]) * along.from;
    }
  }
  // Offsets of the current row from the first one.
  [[nodiscard]] std::ptrdiff_t to() const noexcept { return to_; }
  [[nodiscard]] std::ptrdiff_t from() const noexcept { return from_; }

  void next() noexcept {
    for (std::size_t i = outer_.size(); i-- > 0;) {
      const auto& along = outer_[i];
      to_ += along.to;
      from_ += along.from;
      if (++index_[i] != along.count) {
        return;
      }
      index_[i] = 0;
      to_ -= static_cast<std::ptrdiff_t>(along.count) * along.to;
      from_ -= static_cast<std::ptrdiff_t>(along.count) * along.from;
    }
  }

 private:
  std::span<const MoveDimension> outer_;
  std::array<std::size_t, Most> index_;  // only the first `outer_.size()` are initialized
  std::ptrdiff_t to_ = 0;
  std::ptrdiff_t from_ = 0;
};

}  // namespace isthmus
