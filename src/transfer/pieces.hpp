#pragma once
// A rectangle of bytes in pieces that go by way of the host's memory one after the other.

#include <algorithm>

#include "backend/queue.hpp"
#include "transfer/transfer.hpp"

namespace isthmus {

struct piece {
  std::byte* destination;
  std::byte* source;
  std::size_t width;
  std::size_t rows;

  [[nodiscard]] std::size_t bytes() const noexcept { return width * rows; }
};

// Pieces are of whole rows; rows that are too long are cut into runs.
class pieces {
 public:
  pieces(std::byte* destination, std::byte* source, const pitched& shape, std::size_t most_bytes)
      : destination_{destination},
        source_{source},
        shape_{shape},
        width_{std::min(shape.width, most_bytes)},
        rows_{std::min(most_bytes / width_, shape.height)} {}

  [[nodiscard]] std::size_t count() const noexcept {
    return columns() * ((shape_.height + rows_ - 1) / rows_);
  }
  // Of the largest.
  [[nodiscard]] std::size_t bytes() const noexcept { return width_ * rows_; }
  [[nodiscard]] piece at(std::size_t index) const noexcept {
    const auto row = index / columns() * rows_;
    const auto begin = index % columns() * width_;
    return {destination_ + row * shape_.destination_pitch + begin,
            source_ + row * shape_.source_pitch + begin, std::min(width_, shape_.width - begin),
            std::min(rows_, shape_.height - row)};
  }

  // From its source, or to its destination; `packed` has the piece's rows without gaps.
  [[nodiscard]] copy_2d_shape reading(const piece& what, std::byte* packed) const noexcept {
    return {packed, what.width, what.source, shape_.source_pitch, what.width, what.rows};
  }
  [[nodiscard]] copy_2d_shape writing(const piece& what, std::byte* packed) const noexcept {
    return {what.destination, shape_.destination_pitch, packed, what.width, what.width, what.rows};
  }

 private:
  [[nodiscard]] std::size_t columns() const noexcept {
    return (shape_.width + width_ - 1) / width_;
  }

  std::byte* destination_;
  std::byte* source_;
  pitched shape_;
  std::size_t width_;
  std::size_t rows_;  // 1 where a row is in several pieces
};

}  // namespace isthmus
