// SPDX-License-Identifier: Apache-2.0
#pragma once
// Waiting for conditions that another thread establishes: one of the library or of a driver.

#include <chrono>
#include <thread>

namespace support {

// Polls for up to ten seconds until `holds()` is true, for example because frees of buffers wait
// for work that has just completed. The condition need not stay true: a count may rise again for a
// moment while a thread of the library queries a queue.
template <class Holds>
bool eventually(Holds holds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{10};
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return true;
}

// Returns what `read` counts as live once it is 0 or has not changed for `steady`. Threads of the
// library may still release what earlier tests left, which a comparison of before and after would
// count.
template <class Read>
auto wait_until_stable(Read read,
                       std::chrono::milliseconds quiet_time = std::chrono::milliseconds{300}) {
  using std::chrono::milliseconds;
  auto last = read();
  for (milliseconds same{0}; last.count != 0 && same < quiet_time; same += milliseconds{1}) {
    std::this_thread::sleep_for(milliseconds{1});
    const auto now = read();
    if (now.count != last.count || now.bytes != last.bytes) same = milliseconds{0};
    last = now;
  }
  return last;
}

}  // namespace support
