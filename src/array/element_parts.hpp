// SPDX-License-Identifier: Apache-2.0
#pragma once
// Divides a move of elements into chunks (`parts`) that pass through host memory, where they are
// converted. Immutable, so thread-safe.

#include "array/element_move.hpp"
#include "transfer/parts.hpp"

namespace isthmus {

class ElementParts final : public Parts {
 public:
  // Both packed forms of a chunk have at most `most_bytes` each.
  ElementParts(const ElementMove& move, std::size_t most_bytes) noexcept
      : pieces_{move, most_bytes} {}

  [[nodiscard]] std::size_t count() const noexcept override { return pieces_.count(); }
  [[nodiscard]] std::size_t bytes() const noexcept override { return pieces_.bytes(); }
  // `gather` packs a chunk of the source in the form of the destination. `scatter` unpacks a chunk
  // in the form of the source to the destination.
  void gather(std::size_t index, std::byte* packed) const noexcept override;
  void scatter(std::size_t index, const std::byte* packed) const noexcept override;
  [[nodiscard]] const std::byte* turn(std::size_t index, const std::byte* packed,
                                      std::byte* spare) const noexcept override;
  [[nodiscard]] Submitted read(Queue& queue, std::size_t index, std::byte* packed,
                               WaitList after) const override;
  [[nodiscard]] Submitted write(Queue& queue, std::size_t index, const std::byte* packed,
                                WaitList after) const override;

 private:
  // The move that remains after `read`: from the packed source to the destination.
  [[nodiscard]] ElementMove rest_of(std::size_t index, const std::byte* packed) const noexcept;

  MovePieces pieces_;
};

}  // namespace isthmus
