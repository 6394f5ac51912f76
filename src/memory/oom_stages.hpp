// SPDX-License-Identifier: Apache-2.0
#pragma once
// The out-of-memory stages (`rung`): what a pool tries before a request fails, cheap stages first.
// Each is counted.

#include <array>
#include <atomic>
#include <cstdint>

#include "core/tls.hpp"

namespace isthmus {

enum class OomStage : unsigned {
  settle,       // flush this thread's caches; coalesce memory whose fences have completed
  revoke,       // also flush thread caches that have not been used for a while (thread_cache.hpp)
  grow,         // obtain more from the driver
  trim,         // return all free memory to the driver and request again
  budget,       // other pools of the budget return their free memory
  device_wait,  // make the request's queue wait, on the device, for work that uses freed memory
  reclaim,      // call the program's out-of-memory callbacks (oom_callbacks.hpp)
  wait,         // wait for such work on the host, for a limited time
};
inline constexpr std::size_t k_rungs = 8;

[[nodiscard]] constexpr const char* rung_name(OomStage which) noexcept {
  constexpr std::array<const char*, k_rungs> k_names{"settle", "revoke",      "grow",    "trim",
                                                     "budget", "device_wait", "reclaim", "wait"};
  return k_names.at(static_cast<std::size_t>(which));
}

// Not 0 while this thread holds a lock that the long-running stages may need: its requests skip
// these stages. 2 and more: pools serve it from its thread cache alone, since another thread may
// hold a pool's lock while it is in a driver call that waits for the lock that this thread holds.
ISTHMUS_TLS_MODEL inline thread_local constinit int no_wait = 0;
[[nodiscard]] inline bool only_at_hand() noexcept { return no_wait > 1; }

// The counters of the stages of one pool. Thread-safe.
class OomStages {
 public:
  struct Counts {
    std::uint64_t tried = 0;
    std::uint64_t served = 0;  // requests that the stage served
  };
  void tried(OomStage which) noexcept {
    count(which).tried.fetch_add(1, std::memory_order_relaxed);
  }
  void served(OomStage which) noexcept {
    count(which).served.fetch_add(1, std::memory_order_relaxed);
  }

  [[nodiscard]] Counts of(OomStage which) const noexcept {
    const auto& in = counts_.at(static_cast<std::size_t>(which));
    return {in.tried.load(std::memory_order_relaxed), in.served.load(std::memory_order_relaxed)};
  }

 private:
  struct Counters {
    std::atomic<std::uint64_t> tried{0};
    std::atomic<std::uint64_t> served{0};
  };
  [[nodiscard]] Counters& count(OomStage which) noexcept {
    return counts_.at(static_cast<std::size_t>(which));
  }

  std::array<Counters, k_rungs> counts_{};
};

}  // namespace isthmus
