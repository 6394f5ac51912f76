// SPDX-License-Identifier: Apache-2.0
// A fence on all threads of the process: of two threads that each write a word and then read the
// other's, at least one sees the other's write.
#include "os/process_fence.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace isthmus::os {
namespace {

// Stores that take long to complete, so that a later store stays invisible for long.
class slow_stores {
 public:
  void operator()() {
    for (int i = 0; i < 12; ++i) {
      next_ = (next_ + 40'503) % lines_.size();
      lines_[next_].first = i;
    }
  }

 private:
  struct alignas(64) line {
    int first = 0;
  };
  std::vector<line> lines_ = std::vector<line>(std::size_t{1} << 20);
  std::size_t next_ = 0;
};

// Lets two threads continue at almost the same moment.
class meeting {
 public:
  void operator()(int round) {
    arrived_.fetch_add(1);
    for (int looks = 0; arrived_.load() < 2 * (round + 1); ++looks) {
      if (looks > 10'000) std::this_thread::yield();
    }
  }

 private:
  std::atomic<int> arrived_{0};
};

TEST(process_fence, is_one_in_threads_that_have_none) {
  if (!register_process_fence()) {
    GTEST_SKIP() << "the kernel has no membarrier";
  }
  constexpr int k_rounds = 20'000;
  // Builtins, because without optimization a memory order passed as a parameter becomes the
  // strictest.
  struct alignas(64) word {
    int round = -1;

    void store(int now) { __atomic_store_n(&round, now, __ATOMIC_RELAXED); }
    [[nodiscard]] int load() const { return __atomic_load_n(&round, __ATOMIC_RELAXED); }
  };
  word a;
  word b;
  std::vector<int> seen_by_fast(k_rounds);
  std::vector<int> seen_by_slow(k_rounds);
  int refused = 0;
  meeting begin;
  std::thread fast{[&] {
    slow_stores other_work;
    for (int i = 0; i < k_rounds; ++i) {
      begin(i);
      other_work();
      a.store(i);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      const int seen = b.load();
      seen_by_fast[static_cast<std::size_t>(i)] = seen;
    }
  }};
  slow_stores other_work;
  for (int i = 0; i < k_rounds; ++i) {
    begin(i);
    other_work();
    b.store(i);
    refused += process_fence() ? 0 : 1;
    const int seen = a.load();
    seen_by_slow[static_cast<std::size_t>(i)] = seen;
  }
  fast.join();
  int both_missed = 0;
  for (int i = 0; i < k_rounds; ++i) {
    const auto at = static_cast<std::size_t>(i);
    both_missed += seen_by_fast[at] < i && seen_by_slow[at] < i ? 1 : 0;
  }
  EXPECT_EQ(both_missed, 0);
  EXPECT_EQ(refused, 0);
}

}  // namespace
}  // namespace isthmus::os
