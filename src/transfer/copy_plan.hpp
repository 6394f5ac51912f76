// SPDX-License-Identifier: Apache-2.0
#pragma once
// A checked copy: its endpoints, and which bytes move. Refers to the endpoints and ranges,
// which must outlive it.

#include <memory>

#include "transfer/copy_chunks.hpp"
#include "transfer/endpoint.hpp"

namespace isthmus {

struct CopyPlan {
  const Endpoint& destination;
  const Endpoint& source;
  // From the pointer to the end of the last byte.
  std::size_t destination_bytes = 0;
  std::size_t source_bytes = 0;
  std::size_t nbytes = 0;  // to be copied
  Copy2dShape rows{};      // what is copied, unless one of the next two is set
  std::span<const CopyRange> ranges{};
  const StridedCopy* block = nullptr;  // or null
  bool is_fresh = false;  // destination on the host, none of whose pages was touched yet

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

  // Whether it is more than rows: runs that the host gathers before one operation, or scatters
  // after it.
  [[nodiscard]] bool is_chunked() const noexcept { return block != nullptr || !ranges.empty(); }
  [[nodiscard]] bool is_one_run() const noexcept { return !is_chunked() && rows.height == 1; }
  // Chunks of at most that many bytes.
  [[nodiscard]] std::unique_ptr<const CopyChunks> cut(std::size_t max_bytes) const;
  // Submits it as one operation of a queue that reaches both endpoints.
  [[nodiscard]] Submitted submit_to(Queue& queue, WaitList after) const;
};

}  // namespace isthmus
