#pragma once
// What comes to hold on another thread: the library's, or a driver's.

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

}  // namespace support
