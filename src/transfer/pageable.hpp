// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies between a device and host memory that it accesses slowly: through pinned memory, by
// several threads at once (parallel_copy.hpp).

#include "transfer/copy_plan.hpp"

namespace isthmus {

// Whether such a copy, in the order of `queue`, is better staged than passed to the driver as it
// is.
[[nodiscard]] bool is_better_staged(const Queue& queue, const CopyPlan& movement, bool blocking);

// Pre: `is_better_staged`.
[[nodiscard]] Submitted copy_pageable(Queue& queue, const CopyPlan& movement,
                                      TransferOptions options);

}  // namespace isthmus
