// SPDX-License-Identifier: Apache-2.0
#pragma once
// The out-of-memory stages (`OomStage`): the steps that a pool tries before a request fails, cheap
// ones first. Each attempt is counted. Thread-safe.

#include <array>
#include <atomic>
#include <cstdint>

#include "core/tls.hpp"

namespace isthmus {

enum class OomStage : unsigned {
  collect,       // flush this thread's caches; coalesce memory whose fences have completed
  collect_idle,  // also flush thread caches that have not been used for a while (thread_cache.hpp)
  grow,          // obtain more from the driver
  trim,          // return all free memory to the driver and request again
  budget,        // other pools of the budget return their free memory
  device_wait,   // make the request's queue wait, on the device, for work that uses freed memory
  callback,      // call the program's out-of-memory callbacks (oom_callbacks.hpp)
  wait,          // wait on the host for such work, for a limited time
};
inline constexpr std::size_t k_oom_stages = 8;

[[nodiscard]] constexpr const char* oom_stage_name(OomStage stage) noexcept {
  constexpr std::array<const char*, k_oom_stages> k_names{
      "collect", "collect_idle", "grow", "trim", "budget", "device_wait", "callback", "wait"};
  return k_names.at(static_cast<std::size_t>(stage));
}

// Not 0 while this thread holds a lock that the long-running stages may need: its requests then
// skip these stages. If 2 or more, pools serve this thread only from its thread caches, because
// another thread may hold a pool's lock during a driver call that waits for the lock that this
// thread holds.
ISTHMUS_TLS_MODEL inline thread_local constinit int no_wait = 0;
[[nodiscard]] inline bool thread_cache_only() noexcept { return no_wait > 1; }

// The counters of the stages of one pool. Thread-safe.
class OomStages {
 public:
  struct Counts {
    std::uint64_t tried = 0;
    std::uint64_t served = 0;  // requests that the stage served
  };
  void tried(OomStage stage) noexcept {
    count(stage).tried.fetch_add(1, std::memory_order_relaxed);
  }
  void served(OomStage stage) noexcept {
    count(stage).served.fetch_add(1, std::memory_order_relaxed);
  }

  [[nodiscard]] Counts counts_of(OomStage stage) const noexcept {
    const auto& counters = counts_.at(static_cast<std::size_t>(stage));
    return {counters.tried.load(std::memory_order_relaxed),
            counters.served.load(std::memory_order_relaxed)};
  }

 private:
  struct Counters {
    std::atomic<std::uint64_t> tried{0};
    std::atomic<std::uint64_t> served{0};
  };
  [[nodiscard]] Counters& count(OomStage stage) noexcept {
    return counts_.at(static_cast<std::size_t>(stage));
  }

  std::array<Counters, k_oom_stages> counts_{};
};

}  // namespace isthmus
