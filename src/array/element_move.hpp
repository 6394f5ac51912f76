#pragma once
// Elements on their way: a block of them from one place to another, each converted.

#include <cstddef>

#include "array/layout.hpp"
#include "core/row_walk.hpp"
#include "core/strided.hpp"

namespace isthmus {

struct element_move {
  std::byte* to = nullptr;  // of the first element, as the next
  const std::byte* from = nullptr;
  dtype to_type = ISTHMUS_UINT8;
  dtype from_type = ISTHMUS_UINT8;
  // Outermost first.
  dimension_list<move_dimension> dimensions;

  [[nodiscard]] std::size_t elements() const noexcept;
  [[nodiscard]] std::size_t to_item() const noexcept { return facts_of(to_type).nbytes; }
  [[nodiscard]] std::size_t from_item() const noexcept { return facts_of(from_type).nbytes; }
  // The more that one element takes on a side.
  [[nodiscard]] std::size_t widest() const noexcept { return std::max(to_item(), from_item()); }
};

// In the fewest dimensions, those that lie far apart in the destination outside, where all strides
// are positive. Pre: both have the same shape and an element, and no two of the destination's share
// bytes; the pointers are to the first elements.
[[nodiscard]] element_move move_between(const array_layout& to, std::byte* destination,
                                        const array_layout& from, const std::byte* source) noexcept;

// The same in the fewest dimensions, in the order that they have.
[[nodiscard]] element_move joined(element_move what) noexcept;

// Whether it is what `strided_copy` can say: bytes as they are, forwards on both sides.
[[nodiscard]] bool is_strided_copy(const element_move& what) noexcept;
// Pre: `is_strided_copy`.
[[nodiscard]] strided_copy as_strided(const element_move& what) noexcept;

// By the host, on this thread. Pre: no byte that is written is read.
void move_elements(const element_move& what) noexcept;
// The same by several threads where it is worth that.
void share_elements(const element_move& what) noexcept;

// Of each element of the source once.
[[nodiscard]] std::size_t packed_bytes(const element_move& what) noexcept;

// Each element of the source once, in the order in which they lie, packed from there on: the way to
// it, and the rest of the way.
struct packed_source {
  element_move read;
  element_move rest;
};
[[nodiscard]] packed_source pack_source(const element_move& what, std::byte* packed) noexcept;
// All of the destination likewise: what makes them, and what takes them there.
struct packed_destination {
  element_move first;
  element_move write;
};
[[nodiscard]] packed_destination pack_destination(const element_move& what,
                                                  std::byte* packed) noexcept;

// Cut into blocks of few dimensions and bytes.
class move_pieces {
 public:
  move_pieces(const element_move& what, std::size_t most_bytes) noexcept;
  [[nodiscard]] std::size_t count() const noexcept;
  [[nodiscard]] element_move at(std::size_t index) const noexcept;
  // Of the largest, packed on the side where that is more.
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  element_move whole_;
  std::size_t inside_ = 1;  // elements of the dimensions that every piece has wholly
  std::size_t cut_ = 0;     // the first of those; the one before it is cut
  std::size_t step_ = 1;    // of that one, what a piece has
  std::size_t pieces_ = 1;  // into which it is cut
};

}  // namespace isthmus
