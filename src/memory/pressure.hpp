#pragma once
// What a pool does before it says that there is no memory: a ladder of rungs, the cheap ones first,
// each counted.

#include <array>
#include <atomic>
#include <cstdint>

#include "core/tls.hpp"

namespace isthmus {

enum class rung : unsigned {
  settle,       // what this thread keeps, and what waited for fences that have passed, is free
  revoke,       // so is what threads keep that have not used it for a while (lane.hpp)
  grow,         // the driver is asked for more
  trim,         // all that is free goes back to the driver, which is asked again
  budget,       // other pools of its budget give back what they have free
  device_wait,  // the request's queue waits, on the device, for work that freed memory lies behind
  reclaim,      // the program's reclaim callbacks give memory up (reclaimers.hpp)
  wait,         // the host waits for such work, for a limited time
};
inline constexpr std::size_t k_rungs = 8;

[[nodiscard]] constexpr const char* rung_name(rung which) noexcept {
  constexpr std::array<const char*, k_rungs> k_names{"settle", "revoke",      "grow",    "trim",
                                                     "budget", "device_wait", "reclaim", "wait"};
  return k_names.at(static_cast<std::size_t>(which));
}

// Not 0 while this thread holds a lock that the rungs which may take long may need: its requests
// leave these out. 2 and more: its pools look no further than its lane, as others may hold their
// locks while they are in a driver that waits for the same lock.
ISTHMUS_TLS_MODEL inline thread_local constinit int no_wait = 0;
[[nodiscard]] inline bool only_at_hand() noexcept { return no_wait > 1; }

// Safe for threads.
class pressure {
 public:
  struct counts {
    std::uint64_t tried = 0;
    std::uint64_t served = 0;  // a request was met by it
  };
  void tried(rung which) noexcept { count(which).tried.fetch_add(1, std::memory_order_relaxed); }
  void served(rung which) noexcept { count(which).served.fetch_add(1, std::memory_order_relaxed); }

  [[nodiscard]] counts of(rung which) const noexcept {
    const auto& in = counts_.at(static_cast<std::size_t>(which));
    return {in.tried.load(std::memory_order_relaxed), in.served.load(std::memory_order_relaxed)};
  }

 private:
  struct counters {
    std::atomic<std::uint64_t> tried{0};
    std::atomic<std::uint64_t> served{0};
  };
  [[nodiscard]] counters& count(rung which) noexcept {
    return counts_.at(static_cast<std::size_t>(which));
  }

  std::array<counters, k_rungs> counts_{};
};

}  // namespace isthmus
