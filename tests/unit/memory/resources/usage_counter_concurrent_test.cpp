// SPDX-License-Identifier: Apache-2.0
// Counts of several threads, which each count in their own entry, compared with one model.

#include "memory/resources/usage_counter.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <random>
#include <thread>
#include <vector>

#include "support/sizes.hpp"

namespace isthmus {
namespace {

bool operator==(const UsageCounter::Level& a, const UsageCounter::Level& b) {
  return a.bytes == b.bytes && a.count == b.count;
}

struct counts_model {
  UsageCounter::Counts now;

  void add(std::uint64_t nbytes) {
    now.current.bytes += nbytes, now.current.count += 1;
    now.total.bytes += nbytes, now.total.count += 1;
    now.peak.bytes = std::max(now.peak.bytes, now.current.bytes);
    now.peak.count = std::max(now.peak.count, now.current.count);
  }
  void remove(std::uint64_t nbytes) { now.current.bytes -= nbytes, now.current.count -= 1; }
  void reset() { now.peak = now.current, now.total = {}; }
};

::testing::AssertionResult are_same(const UsageCounter::Counts& got,
                                    const UsageCounter::Counts& wanted) {
  if (got.current == wanted.current && got.peak == wanted.peak && got.total == wanted.total) {
    return ::testing::AssertionSuccess();
  }
  const auto list = [](auto& to, const UsageCounter::Counts& of) -> auto& {
    for (const auto& each : {of.current, of.peak, of.total}) {
      to << ' ' << each.bytes << '/' << each.count;
    }
    return to;
  };
  auto told = ::testing::AssertionFailure();
  return list(list(told, wanted) << " wanted, got", got);
}

void run_threads(unsigned count, auto body) {
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < count; ++i) {
    threads.emplace_back([&body, i] { body(i); });
  }
  for (auto& each : threads) {
    each.join();
  }
}

// The operations that threads run in turn, a random number at a time. Any thread frees what another
// one allocated.
class script {
 public:
  explicit script(unsigned seed) : random_{seed} {}

  // Alternates between mostly allocating and mostly freeing, so that peaks occur only at times.
  void run(UsageCounter& counter, counts_model& wanted, unsigned operations) {
    for (unsigned i = 0; i < operations; ++i, ++done_) {
      const bool grows = done_ / 700 % 3 == 0;
      if (live_.empty() || random_() % 8 < (grows ? 5U : 4U)) {
        const auto nbytes = 1 + random_() % (random_() % 64 == 0 ? 100'000 : 500);
        counter.add(nbytes);
        wanted.add(nbytes);
        live_.push_back(nbytes);
      } else {
        std::swap(live_[random_() % live_.size()], live_.back());
        counter.remove(live_.back());
        if (random_() % 32 == 0) {
          counter.restore(live_.back());
          continue;
        }
        wanted.remove(live_.back());
        live_.pop_back();
      }
    }
  }
  unsigned next(unsigned below) { return static_cast<unsigned>(random_() % below); }

 private:
  std::mt19937 random_;
  std::vector<std::uint64_t> live_;
  unsigned done_ = 0;
};

class in_turn : public ::testing::TestWithParam<unsigned> {};

TEST_P(in_turn, counts_as_the_model) {
  constexpr unsigned k_turns = 3000;
  const auto threads = GetParam();
  UsageCounter counter;
  counts_model wanted;
  script all{threads};
  std::atomic<unsigned> turn{0}, whose{0};
  run_threads(threads, [&](unsigned self) {
    while (turn.load() < k_turns) {
      if (whose.load() != self) {
        std::this_thread::yield();
        continue;
      }
      all.run(counter, wanted, 1 + all.next(all.next(4) == 0 ? 100 : 3));
      if (all.next(100) == 0) {
        EXPECT_TRUE(are_same(counter.read(), wanted.now)) << "in turn " << turn.load();
      }
      if (all.next(500) == 0) {
        counter.reset();
        wanted.reset();
      }
      ++turn;
      whose.store(all.next(threads));
    }
  });
  EXPECT_TRUE(are_same(counter.read(), wanted.now));
}
INSTANTIATE_TEST_SUITE_P(threads, in_turn, ::testing::Values(1, 2, 3, 8));

// Occasionally all threads hold the same number of blocks, up to `k_each`, at the same time.
TEST(usage_counter, misses_no_peak_and_makes_none_up) {
  constexpr unsigned k_threads = 4, k_each = 3, k_rounds = 300;
  UsageCounter counter;
  std::atomic<unsigned> expected{0};
  std::barrier together(k_threads);
  run_threads(k_threads, [&](unsigned self) {
    std::mt19937 random(self);
    for (unsigned round = 1; round <= k_rounds; ++round) {
      const auto most = 1 + round * k_each / k_rounds;
      for (auto i = random() % 100; i != 0; --i) {
        counter.add(100);
        counter.remove(100);
      }
      for (unsigned i = 0; i < most; ++i) {
        counter.add(100);
      }
      together.arrive_and_wait();
      if (self == round % k_threads) {
        expected = std::max(expected.load(), most * k_threads);
        const auto now = counter.read();
        EXPECT_EQ(now.current.count, most * k_threads);
        EXPECT_EQ(now.peak.count, expected.load());
        EXPECT_EQ(now.peak.bytes, 100 * expected.load());
      }
      together.arrive_and_wait();
      for (unsigned i = 0; i < most; ++i) {
        counter.remove(100);
      }
    }
  });
  const auto last = counter.read();
  EXPECT_EQ(last.peak.count, expected.load());
  EXPECT_EQ(last.current.count, 0U);
  EXPECT_EQ(last.current.bytes, 0U);
  EXPECT_EQ(last.total.bytes, 100 * last.total.count);
}

// Both threads hold a block at the same time, and the peak must count both.
TEST(usage_counter, sees_two_that_meet) {
  for (int round = 0; round < 2000; ++round) {
    UsageCounter counter;
    std::barrier together(2);
    run_threads(2, [&](unsigned self) {
      counter.add(1);
      counter.remove(1);
      together.arrive_and_wait();
      counter.add(self + 1);
      together.arrive_and_wait();
      counter.remove(self + 1);
    });
    const auto seen = counter.read();
    ASSERT_EQ(seen.peak.count, 2U);
    ASSERT_EQ(seen.peak.bytes, 3U);
    ASSERT_EQ(seen.current.count, 0U);
  }
}

// One of them counts within its entry's credit, while the other withdraws that credit.
TEST(usage_counter, sees_what_is_counted_while_slots_are_closed) {
  constexpr int k_rounds = 5'000 / static_cast<int>(support::k_slower);
  constexpr int k_till_slots_may_open = 300;
  UsageCounter counter;
  std::atomic<int> arrived{0};
  const auto meet = [&](int meeting) {
    ++arrived;
    for (int looks = 0; arrived.load() < 2 * meeting; ++looks) {
      if (looks > 1000) {
        std::this_thread::yield();
      }
    }
  };
  int missed = 0;
  run_threads(2, [&](unsigned self) {
    for (int round = 0; round < k_rounds; ++round) {
      for (int i = 0; self == 0 && i < k_till_slots_may_open; ++i) {
        counter.add(1);
        counter.remove(1);
      }
      meet(3 * round + 1);
      for (std::atomic<int> late{self == 0 ? round % 100 : 0}; late.load() > 0;) {
        late.store(late.load() - 1, std::memory_order_relaxed);
      }
      counter.add(1);
      meet(3 * round + 2);
      counter.remove(1);
      meet(3 * round + 3);
      if (self == 0) {
        missed += counter.read().peak.count == 2 ? 0 : 1;
        counter.reset();
      }
    }
  });
  EXPECT_EQ(missed, 0);
}

// No more blocks are live at a time than there are permits: a free is counted before its permit is
// returned.
TEST(usage_counter, counts_no_more_than_were_permitted) {
  constexpr unsigned k_threads = 4, k_permits = 3, k_rounds = 20'000;
  UsageCounter counter;
  std::atomic<int> permits{k_permits};
  run_threads(k_threads, [&](unsigned) {
    for (unsigned round = 0; round < k_rounds; ++round) {
      if (permits.fetch_sub(1, std::memory_order_acq_rel) > 0) {
        counter.add(10);
        counter.remove(10);
      }
      permits.fetch_add(1, std::memory_order_acq_rel);
    }
  });
  EXPECT_LE(counter.read().peak.count, k_permits);
  EXPECT_LE(counter.read().peak.bytes, 10 * k_permits);
  EXPECT_EQ(counter.read().current.count, 0U);
}

TEST(usage_counter, counts_more_threads_than_have_numbers) {
  constexpr unsigned k_threads = k_thread_numbers + 16;
  UsageCounter counter;
  std::barrier together(k_threads);
  run_threads(k_threads, [&](unsigned self) {
    for (int round = 0; round < 20; ++round) {
      counter.add(self);
      counter.remove(self);
    }
    counter.add(self);
    together.arrive_and_wait();
    counter.remove(self);
  });
  const auto seen = counter.read();
  EXPECT_EQ(seen.peak.count, k_threads);
  EXPECT_EQ(seen.peak.bytes, k_threads * (k_threads - 1) / 2);
  EXPECT_EQ(seen.total.count, 21 * k_threads);
  EXPECT_EQ(seen.current.count, 0U);
}

// A thread with a number finds its entry as soon as another thread makes the entries exist: here
// between the two steps of one operation.
TEST(usage_counter, loses_nothing_where_slots_are_made_meanwhile) {
  for (const bool frees : {true, false}) {
    UsageCounter counter;
    counter.add(100);  // makes this thread the first
    UsageCounter numbered;
    run_threads(1, [&](unsigned) {
      numbered.add(1);
      const auto left = frees ? counter.try_remove(100) : counter.try_add(10);
      ASSERT_EQ(left, UsageCounter::Rest::all);
      run_threads(1, [&](unsigned) { counter.add(7); });
      frees ? counter.finish_remove(100, left) : counter.finish_add(10, left);
    });
    const auto seen = counter.read();
    EXPECT_EQ(seen.current.bytes, frees ? 7U : 117U);
    EXPECT_EQ(seen.current.count, frees ? 1U : 3U);
  }
}

// Misuse, which the upstream resource detects.
TEST(usage_counter, takes_back_a_free_of_any_size) {
  constexpr auto k_half = std::uint64_t{1} << 63;
  UsageCounter counter;
  counts_model wanted;
  for (const auto nbytes : {std::uint64_t{SIZE_MAX}, k_half + 1, k_half, k_half - 1}) {
    for (int round = 0; round < 3; ++round) {
      counter.remove(nbytes);
      counter.restore(nbytes);
      run_threads(1, [&](unsigned) {
        counter.remove(nbytes);
        counter.restore(nbytes);
      });
      EXPECT_TRUE(are_same(counter.read(), wanted.now)) << nbytes << " bytes, round " << round;
      counter.add(100);
      wanted.add(100);
    }
  }
}

// Each thread reuses the entry of the one before it, with the counts left there.
TEST(usage_counter, counts_threads_that_end) {
  UsageCounter counter;
  counts_model wanted;
  script all{1};
  for (int i = 0; i < 200; ++i) {
    run_threads(1, [&](unsigned) { all.run(counter, wanted, 30); });
    all.run(counter, wanted, 2);
  }
  EXPECT_TRUE(are_same(counter.read(), wanted.now));
}

}  // namespace
}  // namespace isthmus
