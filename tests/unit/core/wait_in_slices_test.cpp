// SPDX-License-Identifier: Apache-2.0
#include "core/interrupt.hpp"

#include <gtest/gtest.h>

#include <string>

namespace isthmus {
namespace {

using clock = std::chrono::steady_clock;
using deadline = std::optional<clock::time_point>;

class interrupt : public testing::Test {
 protected:
  ~interrupt() override { thread_interrupt = {}; }

  static int ends(void* calls, const char** message) {
    *message = "enough";
    return ++*static_cast<int*>(calls) == 3 ? 1 : 0;
  }
  static int ends_silently(void*, const char**) { return 1; }

  int calls_ = 0;
  int waits_ = 0;
};

TEST_F(interrupt, without_a_function_there_is_one_wait) {
  const auto until = clock::now();
  for (const bool is_over : {true, false}) {
    for (const deadline& each : {deadline{until}, deadline{}}) {
      if (!is_over && !each) {
        continue;  // a wait without a deadline ends only when the condition holds
      }
      const auto waited = wait_in_slices(each, [&](const deadline& slice) {
        EXPECT_EQ(slice, each);
        return is_over;
      });
      ASSERT_TRUE(waited);
      EXPECT_EQ(*Result<bool>{waited}, is_over);
    }
  }
}

TEST_F(interrupt, ends_a_wait_with_its_message) {
  thread_interrupt = {&ends, &calls_};
  const auto waited = wait_in_slices(std::nullopt, [&](const deadline& slice) {
    EXPECT_TRUE(slice);
    ++waits_;
    return false;
  });
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.failure().code(), ISTHMUS_ERROR_CALLBACK);
  EXPECT_STREQ(waited.failure().message(), "enough");
  EXPECT_EQ(waits_, 3);
  thread_interrupt = {&ends_silently, nullptr};
  const auto silently = wait_in_slices(std::nullopt, [](const deadline&) { return false; });
  ASSERT_FALSE(silently);
  EXPECT_STREQ(silently.failure().message(), "the wait was interrupted");
}

TEST_F(interrupt, is_not_called_for_what_is_over_or_past_its_deadline) {
  thread_interrupt = {&ends, &calls_};
  auto over = wait_in_slices(std::nullopt, [](const deadline&) { return true; });
  ASSERT_TRUE(over);
  EXPECT_TRUE(*over);
  auto past = wait_in_slices(clock::now(), [](const deadline&) { return false; });
  ASSERT_TRUE(past);
  EXPECT_FALSE(*past);
  EXPECT_EQ(calls_, 0);
}

}  // namespace
}  // namespace isthmus
