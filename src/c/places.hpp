#pragma once
// Places of callers as sides of a transfer: their bounds are checked here.

#include "c/common.hpp"
#include "transfer/endpoint.hpp"

namespace isthmus::c {

// `nbytes` from the place on. A raw pointer is USM that the registry knows, and then its bounds
// hold, or memory of the caller's. OUT_OF_RANGE, INVALID_ARGUMENT, and those of `buffer::at`.
[[nodiscard]] result<endpoint> endpoint_of(const isthmus_place_t& place, std::size_t nbytes,
                                           bool writes);

// The same of `nbytes` that begin `before` bytes in front of the place; the place lies among them.
[[nodiscard]] result<endpoint> endpoint_around(const isthmus_place_t& place, std::size_t before,
                                               std::size_t nbytes, bool writes);

}  // namespace isthmus::c
