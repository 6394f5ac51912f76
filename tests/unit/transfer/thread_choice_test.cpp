// SPDX-License-Identifier: Apache-2.0
// The number of threads chosen for a copy, on model machines: GB/s by the number of threads.

#include "transfer/thread_choice.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

namespace isthmus {
namespace {

constexpr std::size_t k_mib = std::size_t{1} << 20;

using speed = std::function<double(std::size_t threads)>;

// Each thread adds `each` GB/s, up to the limit of the bus or the memory.
speed up_to(double gigabytes, double each) {
  return
      [=](std::size_t threads) { return std::min(gigabytes, each * static_cast<double>(threads)); };
}

class machine {
 public:
  explicit machine(speed of) : of_{std::move(of)} {}

  // Simulates a copy, and returns its number of threads.
  std::size_t copy(std::size_t nbytes, std::size_t most, double slower = 1) {
    const auto threads = choice_.threads_for(nbytes, most);
    const auto time = static_cast<double>(nbytes) / of_(threads) * slower;
    choice_.record(nbytes, threads, std::chrono::nanoseconds{static_cast<std::int64_t>(time)});
    return threads;
  }
  // Copies until the choice is settled, and returns the number of threads chosen.
  std::size_t settled(std::size_t nbytes, std::size_t most) {
    for (copies_ = 0; !choice_.is_decided(nbytes, most); ++copies_) {
      EXPECT_LT(copies_, 100U);
      EXPECT_LE(copy(nbytes, most), most);
    }
    return choice_.threads_for(nbytes, most);
  }
  [[nodiscard]] std::size_t copies() const { return copies_; }
  [[nodiscard]] ThreadChoice& choice() { return choice_; }

 private:
  speed of_;
  ThreadChoice choice_;
  std::size_t copies_ = 0;
};

TEST(thread_choice, stops_where_more_threads_gain_little) {
  EXPECT_EQ(machine(up_to(40, 10)).settled(64 * k_mib, 16), 4U);
  EXPECT_EQ(machine(up_to(55, 10)).settled(64 * k_mib, 16), 6U);
  EXPECT_EQ(machine(up_to(80, 10)).settled(64 * k_mib, 16), 8U);
  EXPECT_EQ(machine(up_to(100, 9)).settled(64 * k_mib, 16), 12U);
  EXPECT_EQ(machine(up_to(1000, 9)).settled(64 * k_mib, 16), 16U);
  EXPECT_EQ(machine(up_to(10, 10)).settled(64 * k_mib, 16), 1U);
}

TEST(thread_choice, finds_the_best_where_more_threads_lose) {
  const speed crowded = [](std::size_t threads) { return threads == 3 ? 30.0 : 20.0; };
  EXPECT_EQ(machine(crowded).settled(64 * k_mib, 16), 3U);
}

// The first copies of a program should cost little more than the later ones.
TEST(thread_choice, converges_after_a_few_copies) {
  machine eight(up_to(80, 10));
  EXPECT_EQ(eight.settled(64 * k_mib, 16), 8U);
  EXPECT_EQ(eight.copies(), 3 * ThreadChoice::k_samples) << "8, 12 and 6 threads";
}

TEST(thread_choice, copes_with_copies_that_something_else_slowed) {
  std::mt19937 random{1};
  for (int time = 0; time < 50; ++time) {
    machine one(up_to(55, 10));
    for (int copies = 0; copies < 60; ++copies) {
      // Most copies take up to 1 % longer, one in four up to three times as long.
      const double late = random() % 4 == 0 ? 1 + static_cast<double>(random() % 200) / 100
                                            : 1 + static_cast<double>(random() % 100) / 10'000;
      one.copy(64 * k_mib, 16, late);
    }
    const auto threads = one.settled(64 * k_mib, 16);
    EXPECT_GE(threads, 4U);
    EXPECT_LE(threads, 12U);
  }
}

TEST(thread_choice, is_never_beyond_what_the_caller_may_use) {
  machine one(up_to(80, 10));
  EXPECT_EQ(one.settled(64 * k_mib, 1), 1U);
  EXPECT_EQ(one.copies(), 0U) << "there is nothing to choose";
  EXPECT_EQ(one.settled(64 * k_mib, 2), 2U);
  EXPECT_EQ(one.settled(64 * k_mib, 5), 5U) << "not a step of its own";
  EXPECT_EQ(one.settled(64 * k_mib, 16), 8U) << "more again";
  EXPECT_EQ(one.settled(64 * k_mib, 2), 2U);
  EXPECT_EQ(one.copies(), 0U) << "which is known";
  EXPECT_EQ(one.settled(64 * k_mib, 100), 8U);
}

TEST(thread_choice, is_of_its_own_for_each_size) {
  machine one(up_to(80, 10));
  EXPECT_EQ(one.settled(64 * k_mib, 16), 8U);
  EXPECT_TRUE(one.choice().is_decided(127 * k_mib, 16));
  EXPECT_FALSE(one.choice().is_decided(128 * k_mib, 16));
  EXPECT_FALSE(one.choice().is_decided(63 * k_mib, 16));
  EXPECT_EQ(one.settled(std::size_t{1} << 40, 16), 8U);
}

TEST(thread_choice, of_small_copies_is_not_measured) {
  machine one(up_to(80, 10));
  EXPECT_TRUE(one.choice().is_decided(ThreadChoice::k_min_timed_bytes - 1, 16));
  EXPECT_EQ(one.choice().threads_for(k_mib, 3), 3U);
  one.choice().record(ThreadChoice::k_min_timed_bytes - 1, 8, std::chrono::nanoseconds{1});
  EXPECT_EQ(one.settled(ThreadChoice::k_min_timed_bytes, 16), 8U);
}

}  // namespace
}  // namespace isthmus
