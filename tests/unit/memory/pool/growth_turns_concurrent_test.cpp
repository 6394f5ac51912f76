// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/growth_turns.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace isthmus {
namespace {

using Turn = GrowthTurns::Turn;

os::Deadline soon() { return os::deadline_after(std::chrono::nanoseconds{1'000'000}.count()); }
os::Deadline late() { return os::deadline_after(std::chrono::nanoseconds{20'000'000'000}.count()); }

TEST(growth_turns, exclude_each_other) {
  GrowthTurns turns{false};
  int inside = 0;
  const auto work = [&] {
    for (int each = 0; each < 1000; ++each) {
      const Turn turn{turns};
      EXPECT_EQ(++inside, 1);
      --inside;
    }
  };
  std::thread other{work};
  work();
  other.join();
  EXPECT_EQ(turns.at_upstream(), 0U);
}

TEST(growth_turns, show_memory_that_is_being_added_until_they_end) {
  GrowthTurns turns{false};
  {
    Turn turn{turns};
    EXPECT_FALSE(turns.is_adding());
    turn.begin_adding();
    turn.begin_adding();
    EXPECT_TRUE(turns.is_adding());
  }
  EXPECT_FALSE(turns.is_adding());
}

TEST(growth_turns, with_an_upstream_are_counted_only) {
  GrowthTurns turns{true};
  const Turn first{turns};
  {
    const Turn second{turns};
    EXPECT_EQ(turns.at_upstream(), 2U);
  }
  EXPECT_EQ(turns.at_upstream(), 1U);
}

TEST(growth_turns, need_no_wait_if_no_thread_is_at_the_upstream) {
  const GrowthTurns turns{true};
  auto returned = turns.wait_for_upstream(turns.begin_upstream_wait(), late());
  ASSERT_TRUE(returned);
  EXPECT_FALSE(*returned);
}

TEST(growth_turns, end_a_wait_when_another_thread_returns) {
  GrowthTurns turns{true};
  std::atomic<bool> is_inside{false};
  std::atomic<bool> may_return{false};
  std::thread other{[&] {
    const Turn turn{turns};
    is_inside = true;
    while (!may_return) {
      std::this_thread::yield();
    }
  }};
  while (!is_inside) {
    std::this_thread::yield();
  }
  const auto seen = turns.begin_upstream_wait();
  { const Turn own{turns}; }  // the thread's own return does not end its wait
  auto early = turns.wait_for_upstream(seen, soon());
  ASSERT_TRUE(early);
  EXPECT_FALSE(*early);
  may_return = true;
  auto returned = turns.wait_for_upstream(seen, late());
  ASSERT_TRUE(returned);
  EXPECT_TRUE(*returned);
  other.join();
}

}  // namespace
}  // namespace isthmus
