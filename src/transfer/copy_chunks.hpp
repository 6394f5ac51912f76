// SPDX-License-Identifier: Apache-2.0
#pragma once
// A copy divided into chunks that pass through host memory, one after another or several
// at a time, each packed there. The host, or a queue of either side, brings a chunk from its source
// or to its destination. Immutable, so thread-safe for different chunks.
//
// The host converts elements: in `gather` or `scatter`, or in `convert` if it can access neither
// side.

#include <cstddef>
#include <memory>
#include <vector>

#include "backend/queue.hpp"
#include "core/strided.hpp"
#include "transfer/transfer.hpp"

namespace isthmus {

class CopyChunks {
 public:
  CopyChunks() = default;
  CopyChunks(const CopyChunks&) = delete;
  CopyChunks& operator=(const CopyChunks&) = delete;
  virtual ~CopyChunks() = default;

  [[nodiscard]] virtual std::size_t count() const noexcept = 0;
  // Size of the largest chunk, packed.
  [[nodiscard]] virtual std::size_t bytes() const noexcept = 0;

  virtual void gather(std::size_t index, std::byte* packed) const noexcept = 0;
  virtual void scatter(std::size_t index, const std::byte* packed) const noexcept = 0;
  // Converts a chunk from the form in which `read` packs it to the form that `write` expects, in
  // `spare`, which has the same size, or in place. Returns the address of the result.
  [[nodiscard]] virtual const std::byte* convert(std::size_t /*index*/, const std::byte* packed,
                                                 std::byte* /*spare*/) const noexcept {
    return packed;
  }
  // Faults in the pages that `scatter` of the chunk would be the first to touch.
  virtual void fault_in(std::size_t /*index*/) const noexcept {}
  [[nodiscard]] virtual Submitted read(Queue& queue, std::size_t index, std::byte* packed,
                                       WaitList after) const = 0;
  [[nodiscard]] virtual Submitted write(Queue& queue, std::size_t index, const std::byte* packed,
                                        WaitList after) const = 0;
};

// Chunks consist of whole rows; rows longer than `max_bytes` are divided.
[[nodiscard]] std::unique_ptr<const CopyChunks> cut_rows(const Copy2dShape& rows,
                                                         std::size_t max_bytes);
// Chunks consist of whole ranges, except those that straddle the boundary of two chunks. A range
// that is packed retains its word alignment on `device_side`, so that it can be moved word by word.
[[nodiscard]] std::unique_ptr<const CopyChunks> cut_ranges(const RangedCopy& copy, Side device_side,
                                                           std::size_t max_bytes);

}  // namespace isthmus
