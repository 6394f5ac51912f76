#pragma once
// What comes to hold on another thread: the library's, or a driver's.

#include <chrono>
#include <thread>

namespace support {

// Frees of buffers, say, may have to wait for work that has just ended.
template <class Holds>
bool patiently(Holds holds) {
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds{10};
  while (!holds() && std::chrono::steady_clock::now() < patience) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return holds();
}

}  // namespace support
