#pragma once
// Every copy and fill there is.
//
// What the host can touch on both sides is copied by the host where the caller blocks anyway: 20 to
// 40 times faster than a driver's queue at 4 KiB (measured on Intel's OpenCL runtime). Everything
// else goes to a queue; between contexts and devices by way of the host, in pieces.

#include "transfer/endpoint.hpp"

namespace isthmus {

// A null event: the operation has ended (blocking form).
using submitted = result<ref<event>>;

// `on` null: the destination's preferred queue, else the source's. Errors: INVALID_ARGUMENT for
// overlap, WRONG_CONTEXT if `on` has to do with neither side; those of the queue.
[[nodiscard]] submitted copy(queue* on, const endpoint& destination, const endpoint& source,
                             std::size_t nbytes, transfer_options options);

struct pitched {
  std::size_t destination_pitch = 0;
  std::size_t source_pitch = 0;
  std::size_t width = 0;
  std::size_t height = 0;

  // Bytes from the first to the last, with that pitch.
  [[nodiscard]] std::size_t extent(std::size_t pitch) const noexcept {
    return width == 0 || height == 0 ? 0 : pitch * (height - 1) + width;
  }
};
[[nodiscard]] submitted copy_2d(queue* on, const endpoint& destination, const endpoint& source,
                                const pitched& shape, transfer_options options);

// The same where the caller knows that no byte is on both sides, and that there are some.
[[nodiscard]] submitted copy_2d_apart(queue* on, const endpoint& destination,
                                      const endpoint& source, const pitched& shape,
                                      transfer_options options);

[[nodiscard]] submitted fill(queue* on, const endpoint& destination, const fill_pattern& pattern,
                             std::size_t nbytes, transfer_options options);

[[nodiscard]] submitted prefetch(queue* on, const endpoint& place, std::size_t nbytes, bool to_host,
                                 transfer_options options);
[[nodiscard]] submitted advise(queue* on, const endpoint& place, std::size_t nbytes,
                               std::uint32_t advice, transfer_options options);

}  // namespace isthmus
