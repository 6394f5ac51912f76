// SPDX-License-Identifier: Apache-2.0
#pragma once
// A validated copy: its endpoints and the bytes to copy. Refers to the endpoints and ranges, which
// must outlive the plan. Immutable once built, so thread-safe.

#include <memory>

#include "transfer/copy_chunks.hpp"
#include "transfer/endpoint.hpp"

namespace isthmus {

struct CopyPlan {
  const Endpoint& destination;
  const Endpoint& source;
  // Number of bytes from the endpoint's pointer to the end of the last byte.
  std::size_t destination_bytes = 0;
  std::size_t source_bytes = 0;
  std::size_t nbytes = 0;  // to copy
  Copy2dShape rows{};      // the bytes to copy, unless `ranges` or `block` is set
  std::span<const CopyRange> ranges{};
  const StridedCopy* block = nullptr;
  bool is_fresh = false;  // the destination is host memory whose pages were never touched

  [[nodiscard]] static CopyPlan of_block(const Endpoint& destination, const Endpoint& source,
                                         const StridedCopy& block) noexcept {
    return {destination,
            source,
            block.extent(Side::destination),
            block.extent(Side::source),
            block.bytes(),
            {},
            {},
            &block};
  }

  // Whether the copy is a block or a list of ranges, so that staging gathers runs before an
  // operation or scatters them after it.
  [[nodiscard]] bool is_chunked() const noexcept { return block != nullptr || !ranges.empty(); }
  [[nodiscard]] bool is_one_run() const noexcept { return !is_chunked() && rows.height == 1; }
  // Divides the copy into chunks of at most `max_bytes` bytes.
  [[nodiscard]] std::unique_ptr<const CopyChunks> cut(std::size_t max_bytes) const;
  // Submits the copy as one operation.
  [[nodiscard]] Submitted submit_to(Queue& queue, WaitList after) const;
};

}  // namespace isthmus
