// SPDX-License-Identifier: Apache-2.0
// Numbers that grow with time, taken by several threads at once.
#include "core/order.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace isthmus::order_test {
namespace {

// A thread may lose its processor between its look at the shared number and its store.
TEST(order, numbers_from_here_grow_whatever_other_threads_do) {
  constexpr int k_threads = 4;
  std::atomic<bool> ended{false};
  std::vector<std::thread> others;
  for (int each = 0; each < k_threads; ++each) {
    others.emplace_back([&] {
      while (!ended.load(std::memory_order_relaxed)) {
        static_cast<void>(next_order());
      }
    });
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds{200};
  bool all_grow = true;
  for (std::uint64_t last = 0; all_grow && std::chrono::steady_clock::now() < until;) {
    const auto next = order_above_all();
    all_grow = next > last;
    last = next;
  }
  ended.store(true, std::memory_order_relaxed);
  for (auto& each : others) {
    each.join();
  }
  EXPECT_TRUE(all_grow);
}

TEST(order, numbers_of_one_thread_grow) {
  auto last = order_above_all();
  for (int each = 0; each < 1000; ++each) {
    const auto next = next_order();
    ASSERT_GT(next, last);
    last = next;
  }
}

}  // namespace
}  // namespace isthmus::order_test
