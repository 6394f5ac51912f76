// A fence in all threads: of two that each write a word and read the other's, one sees the other.
#include "os/process_fence.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <thread>

namespace isthmus::os {
namespace {

TEST(process_fence, is_one_in_threads_that_have_none) {
  if (!arm_process_fence()) {
    GTEST_SKIP() << "the kernel has no membarrier";
  }
  constexpr int k_rounds = 20'000;
  std::atomic<int> a{0};
  std::atomic<int> b{0};
  int seen_by_fast = 0;
  int seen_by_slow = 0;
  int both_missed = 0;
  int refused = 0;
  const auto begin_again = [&]() noexcept {
    both_missed += seen_by_fast == 0 && seen_by_slow == 0 ? 1 : 0;
    a.store(0, std::memory_order_relaxed);
    b.store(0, std::memory_order_relaxed);
  };
  seen_by_fast = 1;
  std::barrier round{2, begin_again};
  std::thread fast{[&] {
    for (int i = 0; i < k_rounds; ++i) {
      round.arrive_and_wait();
      a.store(1, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      seen_by_fast = b.load(std::memory_order_relaxed);
    }
    round.arrive_and_wait();
  }};
  for (int i = 0; i < k_rounds; ++i) {
    round.arrive_and_wait();
    b.store(1, std::memory_order_relaxed);
    refused += process_fence() ? 0 : 1;
    seen_by_slow = a.load(std::memory_order_relaxed);
  }
  round.arrive_and_wait();
  fast.join();
  EXPECT_EQ(both_missed, 0);
  EXPECT_EQ(refused, 0);
}

}  // namespace
}  // namespace isthmus::os
