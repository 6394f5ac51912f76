// SPDX-License-Identifier: Apache-2.0
#pragma once
// Moves of elements. A move copies a block of elements from one memory range to another and
// converts each element. Moves may run concurrently if no range that one of them writes overlaps a
// range of another.

#include <cstddef>

#include "array/layout.hpp"
#include "core/row_walk.hpp"
#include "core/strided.hpp"

namespace isthmus {

struct ElementMove {
  std::byte* destination = nullptr;  // points to the first element, as does `source`
  const std::byte* source = nullptr;
  Dtype destination_type = ISTHMUS_UINT8;
  Dtype source_type = ISTHMUS_UINT8;
  // Outermost first.
  DimensionList<MoveDimension> dimensions;

  [[nodiscard]] std::size_t elements() const noexcept;
  [[nodiscard]] std::size_t destination_item() const noexcept {
    return facts_of(destination_type).nbytes;
  }
  [[nodiscard]] std::size_t source_item() const noexcept { return facts_of(source_type).nbytes; }
  // The larger of the element sizes of both sides.
  [[nodiscard]] std::size_t widest() const noexcept {
    return std::max(destination_item(), source_item());
  }
};

// Returns a move with as few dimensions as possible. The strides of the destination are positive
// and decrease from the outermost dimension inwards. Both layouts have the same shape and at least
// one element, and no two elements of the destination share bytes. The pointers point to the first
// elements.
[[nodiscard]] ElementMove move_between(const ArrayLayout& target_layout, std::byte* destination,
                                       const ArrayLayout& source_layout,
                                       const std::byte* source) noexcept;

// Joins adjacent dimensions where possible, without reordering them.
[[nodiscard]] ElementMove joined(ElementMove move) noexcept;

// Whether the move can be expressed as a `StridedCopy`: no conversion, no negative strides, and few
// enough dimensions.
[[nodiscard]] bool is_strided_copy(const ElementMove& move) noexcept;
[[nodiscard]] StridedCopy as_strided(const ElementMove& move) noexcept;

// Executes the move on the calling thread. Source and destination must not overlap.
void move_elements(const ElementMove& move) noexcept;
// The same, with several threads if that is faster.
void move_elements_in_parallel(const ElementMove& move) noexcept;

// Returns the size of the packed source, in which each of its elements occurs once.
[[nodiscard]] std::size_t packed_bytes(const ElementMove& move) noexcept;

// Splits a move into two, through a packed copy of the source, in which each of its elements occurs
// once, in memory order: from the source to the packed copy, and from there to the destination.
struct PackedSource {
  ElementMove read;
  ElementMove rest;
};
[[nodiscard]] PackedSource pack_source(const ElementMove& move, std::byte* packed) noexcept;
// The same through a packed copy of the destination: `pack` produces the packed copy, `write`
// copies it to the destination.
struct PackedDestination {
  ElementMove pack;
  ElementMove write;
};
[[nodiscard]] PackedDestination pack_destination(const ElementMove& move,
                                                 std::byte* packed) noexcept;

// Divides a move into chunks that have at most `max_bytes` bytes and few enough dimensions for a
// `StridedCopy`.
class MoveChunks {
 public:
  MoveChunks(const ElementMove& move, std::size_t max_bytes) noexcept;
  [[nodiscard]] std::size_t count() const noexcept;
  [[nodiscard]] ElementMove at(std::size_t index) const noexcept;
  // Packed size of the largest chunk, in the wider of the two dtypes.
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  ElementMove whole_;
  std::size_t inner_elements_ =
      1;                         // elements of the dimensions that every chunk contains completely
  std::size_t first_inner_ = 0;  // index of the first of these; the dimension before it is divided
  std::size_t chunk_entries_ = 1;  // entries of the divided dimension in a chunk
  std::size_t chunks_along_ = 1;   // number of chunks along the divided dimension
};

}  // namespace isthmus
