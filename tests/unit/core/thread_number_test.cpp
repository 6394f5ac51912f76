// SPDX-License-Identifier: Apache-2.0
#include "core/thread_number.hpp"

#include <gtest/gtest.h>

#include <barrier>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "support/thread_end.hpp"

namespace isthmus {
namespace {

// The numbers of `count` threads that exist at the same time.
std::multiset<std::uint32_t> numbers_of(std::ptrdiff_t count) {
  std::multiset<std::uint32_t> all;
  std::mutex lock;
  std::barrier together(count);
  std::vector<std::thread> threads;
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    threads.emplace_back([&] {
      EXPECT_EQ(thread_number(), 0U);
      const auto mine = claim_thread_number();
      EXPECT_EQ(thread_number(), mine);
      EXPECT_EQ(claim_thread_number(), mine);
      {
        const std::lock_guard hold{lock};
        all.insert(mine);
      }
      together.arrive_and_wait();
    });
  }
  for (auto& each : threads) {
    each.join();
  }
  return all;
}

TEST(thread_number, is_that_of_one_living_thread) {
  for (int round = 0; round < 50; ++round) {
    const auto few = numbers_of(8);
    EXPECT_EQ(std::set<std::uint32_t>(few.begin(), few.end()).size(), 8U);
    EXPECT_GT(*few.begin(), 0U);
    EXPECT_LT(*few.rbegin(), 12U) << "the lowest that nobody has: this thread may have one";
  }
}

TEST(thread_number, runs_out) {
  const auto many = numbers_of(k_thread_numbers + 10);
  EXPECT_GE(many.count(k_thread_numbers), 11U) << "0 is nobody's";
  for (std::uint32_t each = 1; each < k_thread_numbers; ++each) {
    EXPECT_LE(many.count(each), 1U);
  }
  EXPECT_EQ(numbers_of(4).count(k_thread_numbers), 0U) << "they came back";
}

TEST(thread_number, is_no_more_while_the_thread_ends) {
  std::uint32_t seen = 0;
  std::thread([&] {
    support::run_at_thread_end([&] { seen = claim_thread_number(); });
    EXPECT_NE(claim_thread_number(), k_thread_numbers);
  }).join();
  EXPECT_EQ(seen, k_thread_numbers);
}

}  // namespace
}  // namespace isthmus
