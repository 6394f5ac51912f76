// SPDX-License-Identifier: Apache-2.0
#pragma once
// Divides a move of elements into chunks that pass through host memory, where they are
// converted. Immutable, so thread-safe.

#include "array/element_move.hpp"
#include "transfer/copy_chunks.hpp"

namespace isthmus {

class ElementChunks final : public CopyChunks {
 public:
  // Both packed forms of a chunk have at most `max_bytes` each.
  ElementChunks(const ElementMove& move, std::size_t max_bytes) noexcept
      : chunks_{move, max_bytes} {}

  [[nodiscard]] std::size_t count() const noexcept override { return chunks_.count(); }
  [[nodiscard]] std::size_t bytes() const noexcept override { return chunks_.bytes(); }
  // `gather` packs a chunk of the source in the form of the destination. `scatter` unpacks a chunk
  // in the form of the source to the destination.
  void gather(std::size_t index, std::byte* packed) const noexcept override;
  void scatter(std::size_t index, const std::byte* packed) const noexcept override;
  [[nodiscard]] const std::byte* convert(std::size_t index, const std::byte* packed,
                                         std::byte* scratch) const noexcept override;
  [[nodiscard]] Submitted read(Queue& queue, std::size_t index, std::byte* packed,
                               WaitList after) const override;
  [[nodiscard]] Submitted write(Queue& queue, std::size_t index, const std::byte* packed,
                                WaitList after) const override;

 private:
  // The move that remains after `read`: from the packed source to the destination.
  [[nodiscard]] ElementMove rest_after_read(std::size_t index,
                                            const std::byte* packed) const noexcept;

  MoveChunks chunks_;
};

}  // namespace isthmus
