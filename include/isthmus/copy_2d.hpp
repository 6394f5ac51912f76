// SPDX-License-Identifier: Apache-2.0
// Copies of `height` rows of `width` bytes. The starts of the rows are `pitch` bytes apart; each
// side has its own pitch.
//
//   isthmus::copy_2d({image, 8192}, {std::span(tile), 256}, {.width = 256, .height = 64});
//
// Throws out_of_range if the rows exceed an endpoint, invalid_argument if several rows have a pitch
// below `width`, and the errors of copy().
// Cost: one driver call if the driver supports such copies. Thread-safe.
#pragma once

#include <isthmus/copy.hpp>

namespace isthmus {
inline namespace v1 {

// A source or destination of rows.
template <class Endpoint>
struct pitched {
  Endpoint endpoint;
  std::size_t pitch = 0;
};
// The size of the rows, in bytes, and their number.
struct extent {
  std::size_t width = 0;
  std::size_t height = 0;
};

namespace detail {

// Bytes from the start of the first row to the end of the last one; saturates.
[[nodiscard]] inline std::size_t spanned_bytes(extent size, std::size_t pitch) noexcept {
  constexpr std::size_t max = std::numeric_limits<std::size_t>::max();
  if (size.width == 0 || size.height == 0) return 0;
  const std::size_t gaps = size.height - 1;
  if (pitch != 0 && gaps > (max - size.width) / pitch) return max;
  return gaps * pitch + size.width;
}

inline auto copy_2d_call(const pitched<isthmus::destination>& destination,
                         const pitched<isthmus::source>& source, extent size, queue_choice queue) {
  check_bounds(source.endpoint, spanned_bytes(size, source.pitch), "source");
  check_bounds(destination.endpoint, spanned_bytes(size, destination.pitch), "destination");
  return [&destination, &source, size, queue](const isthmus_operation_t* operation,
                                              isthmus_event_t** event) {
    return isthmus_copy_2d(queue.get(), destination.endpoint.raw(), destination.pitch,
                           source.endpoint.raw(), source.pitch, size.width, size.height, operation,
                           event);
  };
}

}  // namespace detail

// Copies and waits until the copy has completed; throws its error.
inline void copy_2d(const pitched<isthmus::destination>& destination,
                    const pitched<isthmus::source>& source, extent size,
                    isthmus::operation operation = {}) {
  detail::run(operation, nullptr, detail::copy_2d_call(destination, source, size, operation.queue));
}
// Submits the copy and returns an event that completes with it.
inline event copy_2d_async(const pitched<isthmus::destination>& destination,
                           const pitched<isthmus::source>& source, extent size,
                           isthmus::operation operation = {}) {
  return detail::run_async(operation,
                           detail::copy_2d_call(destination, source, size, operation.queue));
}

}  // namespace v1
}  // namespace isthmus
