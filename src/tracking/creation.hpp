// SPDX-License-Identifier: Apache-2.0
#pragma once
// Creates tracked memory with the mechanism that a request names, or else with the one that is
// chosen for its size (choice.hpp). Thread-safe.

#include <memory>

#include "core/status.hpp"
#include "tracking/tracked_memory.hpp"

namespace isthmus::tracking {

// Creates zeroed memory without written ranges. Errors: OUT_OF_MEMORY; UNSUPPORTED, with the
// reason, if the requested mechanism is not available.
[[nodiscard]] Result<std::unique_ptr<TrackedMemory>> create_memory(const Request& request);

}  // namespace isthmus::tracking
