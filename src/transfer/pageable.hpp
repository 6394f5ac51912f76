// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies between a device and host memory that it accesses slowly: through pinned memory, by
// several threads at once (parallel_copy.hpp). Thread-safe.

#include "transfer/copy_plan.hpp"

namespace isthmus {

// Whether staging such a copy, in the order of `queue`, is better than passing it to the driver
// unchanged.
[[nodiscard]] bool is_better_staged(const Queue& queue, const CopyPlan& plan, bool blocking);

// Pre: `is_better_staged`.
[[nodiscard]] Submitted copy_pageable(Queue& queue, const CopyPlan& plan, TransferOptions options);

}  // namespace isthmus
