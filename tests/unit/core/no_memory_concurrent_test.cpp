// SPDX-License-Identifier: Apache-2.0
// Errors are reported even where the host has no memory left, on any number of threads at once.

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "core/status.hpp"
#include "support/no_memory.hpp"

namespace isthmus {
namespace {

using support::without_memory;

Error fail_without_memory(int number) {
  const without_memory now;
  return fail(ISTHMUS_ERROR_OUT_OF_RANGE, "number {} of {}", number, "some");
}

TEST(no_memory, an_error_is_reported_without_memory) {
  const auto made = fail_without_memory(7);
  EXPECT_EQ(made.code(), ISTHMUS_ERROR_OUT_OF_RANGE);
  EXPECT_STREQ(made.message(), "number 7 of some");
}

TEST(no_memory, a_long_text_is_cut_off) {
  const std::string text(5000, 'x');
  const auto in_full = fail(ISTHMUS_ERROR_DRIVER, "{}", text);
  EXPECT_EQ(in_full.message(), text);
  Error cut;
  {
    const without_memory now;
    cut = fail(ISTHMUS_ERROR_DRIVER, "{}", text);
  }
  EXPECT_EQ(cut.code(), ISTHMUS_ERROR_DRIVER);
  EXPECT_EQ(cut.message(), text.substr(0, Error::k_max_preallocated_text));
}

TEST(no_memory, reserved_errors_are_reused_and_further_ones_report_no_memory) {
  for (int round = 0; round < 3; ++round) {
    std::vector<Error> all(1000);
    int told = 0;
    for (auto& each : all) {
      each = fail_without_memory(round);
      told += each.code() == ISTHMUS_ERROR_OUT_OF_RANGE ? 1 : 0;
      EXPECT_STRNE(each.message(), "");
    }
    EXPECT_GE(told, 200);
    EXPECT_LT(told, 1000);
    EXPECT_EQ(all.back().code(), ISTHMUS_ERROR_OUT_OF_MEMORY);
  }
}

TEST(no_memory, threads_fail_at_once) {
  std::vector<std::thread> threads;
  for (int number = 0; number < 8; ++number) {
    threads.emplace_back([number] {
      const auto wanted = "number " + std::to_string(number) + " of some";
      for (int round = 0; round < 2000; ++round) {
        EXPECT_EQ(fail_without_memory(number).message(), wanted);
      }
    });
  }
  for (auto& each : threads) {
    each.join();
  }
}

}  // namespace
}  // namespace isthmus
