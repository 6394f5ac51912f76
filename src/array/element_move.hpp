// SPDX-License-Identifier: Apache-2.0
#pragma once
// A move: copies a block of elements from one memory range to another and converts each element.
// Thread-safe if the ranges of concurrent moves do not overlap.

#include <cstddef>

#include "array/layout.hpp"
#include "core/row_walk.hpp"
#include "core/strided.hpp"

namespace isthmus {

struct element_move {
  std::byte* to = nullptr;  // points to the first element, as does `from`
  const std::byte* from = nullptr;
  dtype to_type = ISTHMUS_UINT8;
  dtype from_type = ISTHMUS_UINT8;
  // Outermost first.
  dimension_list<move_dimension> dimensions;

  [[nodiscard]] std::size_t elements() const noexcept;
  [[nodiscard]] std::size_t to_item() const noexcept { return facts_of(to_type).nbytes; }
  [[nodiscard]] std::size_t from_item() const noexcept { return facts_of(from_type).nbytes; }
  // The larger of the element sizes of both sides.
  [[nodiscard]] std::size_t widest() const noexcept { return std::max(to_item(), from_item()); }
};

// A move in the fewest dimensions, with the largest strides of the destination outermost and all of
// them positive. Pre: both layouts have the same shape and at least one element, and no two
// elements of the destination share bytes. The pointers are to the first elements.
[[nodiscard]] element_move move_between(const array_layout& to, std::byte* destination,
                                        const array_layout& from, const std::byte* source) noexcept;

// The same in the fewest dimensions, without reordering them.
[[nodiscard]] element_move joined(element_move what) noexcept;

// Whether it can be expressed as a `strided_copy`: no conversion, no negative strides.
[[nodiscard]] bool is_strided_copy(const element_move& what) noexcept;
// Pre: `is_strided_copy`.
[[nodiscard]] strided_copy as_strided(const element_move& what) noexcept;

// Executes the move on the calling thread. Pre: source and destination do not overlap.
void move_elements(const element_move& what) noexcept;
// The same, by several threads if that is faster.
void share_elements(const element_move& what) noexcept;

// Bytes of the packed source, in which each of its elements occurs once.
[[nodiscard]] std::size_t packed_bytes(const element_move& what) noexcept;

// Splits a move into two, by way of a packed copy of the source, in which each of its elements
// occurs once, in memory order: from the source to the packed copy, and from there to the
// destination.
struct packed_source {
  element_move read;
  element_move rest;
};
[[nodiscard]] packed_source pack_source(const element_move& what, std::byte* packed) noexcept;
// The same by way of a packed copy of the destination: the first move produces it, the second one
// writes it to the destination.
struct packed_destination {
  element_move first;
  element_move write;
};
[[nodiscard]] packed_destination pack_destination(const element_move& what,
                                                  std::byte* packed) noexcept;

// Divides a move into chunks (`piece`) of few dimensions and bytes.
class move_pieces {
 public:
  move_pieces(const element_move& what, std::size_t most_bytes) noexcept;
  [[nodiscard]] std::size_t count() const noexcept;
  [[nodiscard]] element_move at(std::size_t index) const noexcept;
  // Bytes of the largest chunk, packed on the side that needs more.
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  element_move whole_;
  std::size_t inside_ = 1;  // elements of the dimensions that every chunk contains completely
  std::size_t cut_ = 0;     // the first of those; the dimension before it is divided
  std::size_t step_ = 1;    // entries of the divided dimension in a chunk
  std::size_t pieces_ = 1;  // number of chunks along the divided dimension
};

}  // namespace isthmus
