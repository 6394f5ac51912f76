// SPDX-License-Identifier: Apache-2.0
#pragma once
// A copy divided into chunks, each of which is packed in host memory on its way. Chunks are
// processed one after another or several at a time. The host, or a queue of either side, copies a
// chunk from the source to the packed memory and from there to the destination. Immutable, so calls
// for different chunks may be concurrent.
//
// If elements are converted, the host converts them: in `gather` or `scatter`, or in `convert` if
// the host can access neither side.

#include <cstddef>
#include <memory>
#include <vector>

#include "backend/queue.hpp"
#include "core/strided.hpp"
#include "transfer/transfer_options.hpp"

namespace isthmus {

class CopyChunks {
 public:
  CopyChunks() = default;
  CopyChunks(const CopyChunks&) = delete;
  CopyChunks& operator=(const CopyChunks&) = delete;
  virtual ~CopyChunks() = default;

  [[nodiscard]] virtual std::size_t count() const noexcept = 0;
  // Packed size of the largest chunk.
  [[nodiscard]] virtual std::size_t bytes() const noexcept = 0;

  virtual void gather(std::size_t index, std::byte* packed) const noexcept = 0;
  virtual void scatter(std::size_t index, const std::byte* packed) const noexcept = 0;
  // Converts a chunk from the form in which `read` packs it to the form that `write` expects, in
  // `spare`, which has the same size, or in place. Returns the address of the result.
  [[nodiscard]] virtual const std::byte* convert(std::size_t /*index*/, const std::byte* packed,
                                                 std::byte* /*spare*/) const noexcept {
    return packed;
  }
  // Faults in the destination pages that `scatter` of the chunk would otherwise fault in.
  virtual void fault_in(std::size_t /*index*/) const noexcept {}
  [[nodiscard]] virtual Submitted read(Queue& queue, std::size_t index, std::byte* packed,
                                       WaitList after) const = 0;
  [[nodiscard]] virtual Submitted write(Queue& queue, std::size_t index, const std::byte* packed,
                                        WaitList after) const = 0;
};

// Divides a copy into chunks of whole rows; rows longer than `max_bytes` are split.
[[nodiscard]] std::unique_ptr<const CopyChunks> cut_rows(const Copy2dShape& rows,
                                                         std::size_t max_bytes);
// Divides a copy into chunks of whole ranges; a range that does not fit into the rest of a chunk is
// split. A packed range has the same alignment to 16-byte words as on `device_side`, so that it can
// be copied word by word.
[[nodiscard]] std::unique_ptr<const CopyChunks> cut_ranges(const RangedCopy& copy, Side device_side,
                                                           std::size_t max_bytes);

}  // namespace isthmus
