// SPDX-License-Identifier: Apache-2.0
#include "core/share_out.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace isthmus {
namespace {

constexpr std::size_t k_shared_bytes = 3 * k_large_bytes + 11;
constexpr std::size_t k_shared_mark = 4096;

// What a chunk has written is visible once `done` reports it.
TEST(share_out_in_order, reports_progress_from_the_beginning) {
  for (int round = 0; round < 20; ++round) {
    std::vector<std::uint8_t> marks(k_shared_bytes / k_shared_mark + 1);
    std::size_t told = 0;
    share_out_in_order(
        k_shared_bytes,
        [&](std::size_t at, std::size_t n) {
          for (auto each = at / k_shared_mark; each * k_shared_mark < at + n; ++each) {
            marks[each] = 1;
          }
        },
        [&](std::size_t upto) {
          EXPECT_GE(upto, told);
          for (auto each = told / k_shared_mark; each * k_shared_mark < upto; ++each) {
            EXPECT_EQ(marks[each], 1);
          }
          told = upto;
          return true;
        });
    ASSERT_EQ(told, k_shared_bytes);
  }
}

// How many chunks were begun before that depends on the other threads.
TEST(share_out_in_order, calls_nothing_after_it_was_stopped) {
  for (int last = 1; last < 4; ++last) {
    std::atomic<std::size_t> done{0};
    std::size_t told = 0;
    int calls = 0;
    share_out_in_order(
        k_shared_bytes, [&](std::size_t, std::size_t n) { done += n; },
        [&](std::size_t upto) {
          EXPECT_LE(upto, done);
          told = upto;
          return ++calls < last;
        });
    EXPECT_LE(calls, last);
    EXPECT_TRUE(calls == last || told == k_shared_bytes);
  }
}

TEST(share_out_in_order, reports_an_empty_range) {
  std::size_t told = 1;
  share_out_in_order(
      0, [](std::size_t, std::size_t) { FAIL(); },
      [&](std::size_t upto) { return (told = upto) == 0; });
  EXPECT_EQ(told, 0U);
}

}  // namespace
}  // namespace isthmus
