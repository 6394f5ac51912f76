// What is live in the process, by the library's own counts.
#pragma once

#include <chrono>
#include <thread>

#include "memory/default_pools.hpp"
#include "memory/live_counts.hpp"

namespace support {

inline isthmus::live_total live() {
  auto total = isthmus::process_live_counts().total(ISTHMUS_KIND_UNKNOWN);
  isthmus::default_pools::only().count_blocks(total, ISTHMUS_KIND_UNKNOWN);
  return total;
}

// Library threads release what earlier tests left, which a test that compares what is live before
// and after would count. Returns once nothing is live, or has been the same for a while.
inline void wait_for_what_others_left() {
  using namespace std::chrono_literals;
  auto last = live();
  for (auto same = 0ms; last.count != 0 && same < 300ms; same += 1ms) {
    std::this_thread::sleep_for(1ms);
    const auto now = live();
    if (now.count != last.count || now.bytes != last.bytes) {
      same = 0ms;
    }
    last = now;
  }
}

}  // namespace support
