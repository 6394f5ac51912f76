// SPDX-License-Identifier: Apache-2.0
#pragma once
// Divides a move of elements into chunks, which are converted in host memory. Immutable, so
// thread-safe for different chunks.

#include "array/element_move.hpp"
#include "transfer/copy_chunks.hpp"

namespace isthmus {

class ElementChunks final : public CopyChunks {
 public:
  // A packed chunk has at most `max_bytes` bytes, both in the source's dtype and in the
  // destination's.
  ElementChunks(const ElementMove& move, std::size_t max_bytes) noexcept
      : chunks_{move, max_bytes} {}

  [[nodiscard]] std::size_t count() const noexcept override { return chunks_.count(); }
  [[nodiscard]] std::size_t bytes() const noexcept override { return chunks_.bytes(); }
  // `gather` converts a chunk of the source to packed elements of the destination's dtype.
  // `scatter` converts packed elements of the source's dtype to a chunk of the destination.
  void gather(std::size_t index, std::byte* packed) const noexcept override;
  void scatter(std::size_t index, const std::byte* packed) const noexcept override;
  [[nodiscard]] const std::byte* convert(std::size_t index, const std::byte* packed,
                                         std::byte* scratch) const noexcept override;
  [[nodiscard]] Submitted read(Queue& queue, std::size_t index, std::byte* packed,
                               WaitList after) const override;
  [[nodiscard]] Submitted write(Queue& queue, std::size_t index, const std::byte* packed,
                                WaitList after) const override;

 private:
  // Returns the move that remains after `read`: from the packed source to the destination.
  [[nodiscard]] ElementMove rest_after_read(std::size_t index,
                                            const std::byte* packed) const noexcept;

  MoveChunks chunks_;
};

}  // namespace isthmus
