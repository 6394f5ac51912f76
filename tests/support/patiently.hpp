#pragma once
// What comes to hold, or ends, on another thread: the library's, or a driver's.

#include <chrono>
#include <thread>

namespace support {

// Frees of buffers, say, may have to wait for work that has just ended. Held once is enough: what is
// counted may be more again for a moment, while a thread of the library asks a queue.
template <class Holds>
bool patiently(Holds holds) {
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds{10};
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= patience) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return true;
}

// What is live, by `read`, once it is nothing or has stayed the same for so long. Threads of the
// library release what earlier tests left: a test that compares before and after would count that.
template <class Read>
auto settled(Read read, std::chrono::milliseconds steady = std::chrono::milliseconds{300}) {
  using std::chrono::milliseconds;
  auto last = read();
  for (milliseconds same{0}; last.count != 0 && same < steady; same += milliseconds{1}) {
    std::this_thread::sleep_for(milliseconds{1});
    const auto now = read();
    if (now.count != last.count || now.bytes != last.bytes) same = milliseconds{0};
    last = now;
  }
  return last;
}

}  // namespace support
