// SPDX-License-Identifier: Apache-2.0
// Ends the program if a call does not return in time. A blocked call cannot be ended otherwise.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

#include "support/sizes.hpp"

namespace support {

class watchdog {
 public:
  explicit watchdog(std::string guarded, std::chrono::seconds limit = std::chrono::seconds{20})
      : guarded_{std::move(guarded)}, limit_{limit * k_slower} {}
  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;
  ~watchdog() {
    ended_.store(true);
    guard_.join();
  }

 private:
  void guard() const {
    const auto deadline = std::chrono::steady_clock::now() + limit_;
    while (!ended_.load()) {
      if (std::chrono::steady_clock::now() > deadline) {
        std::fprintf(stderr, "no end: %s\n", guarded_.c_str());
        std::abort();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  }

  const std::string guarded_;
  const std::chrono::seconds limit_;
  std::atomic<bool> ended_{false};
  std::thread guard_{[this] { guard(); }};
};

}  // namespace support
