// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies between a device and host memory to which the device has slow access. The copies go
// through pinned memory and use several threads (parallel_copy.hpp). Thread-safe.

#include "transfer/copy_plan.hpp"

namespace isthmus {

// Whether the copy, in the order of `queue`, should be staged rather than passed to the driver.
[[nodiscard]] bool is_better_staged(const Queue& queue, const CopyPlan& plan, bool blocking);

// For copies for which `is_better_staged` is true.
[[nodiscard]] Submitted copy_pageable(Queue& queue, const CopyPlan& plan, TransferOptions options);

}  // namespace isthmus
