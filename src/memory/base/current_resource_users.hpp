// SPDX-License-Identifier: Apache-2.0
#pragma once
// The number of current resources of the process plus that of `using` blocks that exist.
//
// While it is 0, requests without a resource use the default pool, and nothing is searched.
// Thread-safe. Relaxed: a thread that is to see a change is synchronized with it by the program.

#include <atomic>
#include <cstdint>

namespace isthmus {

inline constinit std::atomic<std::uint32_t> current_resource_users{0};

[[nodiscard]] inline bool has_current_resources() noexcept {
  return current_resource_users.load(std::memory_order_relaxed) != 0;
}

}  // namespace isthmus
