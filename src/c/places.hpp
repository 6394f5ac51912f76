#pragma once
// Places of callers as sides of a transfer: what lies there, and its bounds, are checked here.
//
// An address without a buffer is one of these:
// - in a live block of the library's: that block is the side, and its bounds hold;
// - in memory that the library manages, but in no live block: INVALID_ARGUMENT;
// - in no memory of the library's: the caller's, as far as the library knows. For a copy it is
//   plain host memory, and the driver is not queried; for what a device works on see `target_of`.

#include "backend/queue.hpp"
#include "c/common.hpp"
#include "transfer/endpoint.hpp"

namespace isthmus::c {

// `nbytes` from the place on. OUT_OF_RANGE, INVALID_ARGUMENT, and those of `buffer::at`.
[[nodiscard]] result<endpoint> endpoint_of(const isthmus_place_t& place, std::size_t nbytes,
                                           bool writes);

// The same of `nbytes` that begin `before` bytes in front of the place; the place lies among them.
[[nodiscard]] result<endpoint> endpoint_around(const isthmus_place_t& place, std::size_t before,
                                               std::size_t nbytes, bool writes);

// What a fill writes, or a hint is about.
enum class device_work { fill, hint };

// `side` as the target of work of the device of `on` (null: none was named). A side without a
// record is one that the driver knows, allocated by another library, or for a fill plain host
// memory that the device reaches; without a queue the host fills. INVALID_ARGUMENT for other
// addresses; OUT_OF_RANGE, WRONG_CONTEXT. Does nothing for memory of the library's.
[[nodiscard]] result<endpoint> target_of(endpoint side, std::size_t nbytes, queue* on,
                                         device_work what);

}  // namespace isthmus::c
