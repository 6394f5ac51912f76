// SPDX-License-Identifier: Apache-2.0
#pragma once
// All copies and fills of the library. Thread-safe.
//
// If the host can access both sides and the call blocks anyway, the host copies. At 4 KiB this is
// 20 to 40 times faster than a driver's queue (Intel's OpenCL runtime). The host also executes
// copies of at most 256 KiB if nothing pending is ordered before them. All other operations go to a
// queue; copies between contexts or devices go through host memory, in chunks.

#include "transfer/endpoint.hpp"
#include "transfer/transfer_options.hpp"

namespace isthmus {

// If `queue` is null the destination's preferred queue is used, else the source's. Errors:
// INVALID_ARGUMENT if the sides overlap, WRONG_CONTEXT if `queue` is in the context of neither
// side, and the errors of the queue.
[[nodiscard]] Submitted copy(Queue* queue, const Endpoint& destination, const Endpoint& source,
                             std::size_t nbytes, TransferOptions options);

struct Pitched {
  std::size_t destination_pitch = 0;
  std::size_t source_pitch = 0;
  std::size_t width = 0;
  std::size_t height = 0;

  // Bytes from the beginning of the first row to the end of the last, with that pitch.
  [[nodiscard]] std::size_t extent(std::size_t pitch) const noexcept {
    return width == 0 || height == 0 ? 0 : pitch * (height - 1) + width;
  }
};
[[nodiscard]] Submitted copy_2d(Queue* queue, const Endpoint& destination, const Endpoint& source,
                                const Pitched& shape, TransferOptions options);

// As `copy_2d`, for a source and a destination that do not overlap.
[[nodiscard]] Submitted copy_2d_disjoint(Queue* queue, const Endpoint& destination,
                                         const Endpoint& source, const Pitched& shape,
                                         TransferOptions options);

[[nodiscard]] Submitted fill(Queue* queue, const Endpoint& destination, const FillPattern& pattern,
                             std::size_t nbytes, TransferOptions options);

[[nodiscard]] Submitted prefetch(Queue* queue, const Endpoint& endpoint, std::size_t nbytes,
                                 bool to_host, TransferOptions options);
[[nodiscard]] Submitted advise(Queue* queue, const Endpoint& endpoint, std::size_t nbytes,
                               std::uint32_t advice, TransferOptions options);

}  // namespace isthmus
