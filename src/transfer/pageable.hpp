#pragma once
// Copies between a device and plain host memory that it reaches badly: by way of pinned memory, by
// several threads at once (crew_copy.hpp).

#include "transfer/movement.hpp"

namespace isthmus {

// Whether such a copy is better made so, in the order of `on`, than given to a driver as it is.
[[nodiscard]] bool is_better_staged(const queue& on, const movement& what, bool blocking);

// Pre: `is_better_staged`.
[[nodiscard]] submitted copy_pageable(queue& on, const movement& what, transfer_options options);

}  // namespace isthmus
