// SPDX-License-Identifier: Apache-2.0
// Allocated ranges never overlap, and freed ranges become one again.

#include "tracking/free_ranges.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace isthmus::tracking {
namespace {

constexpr std::size_t k_all = 10'000;

TEST(free_ranges, random_taking_and_giving_against_a_model) {
  FreeRanges free;
  free.give({0, k_all});
  std::vector<ByteRange> live;
  std::mt19937_64 random{3};
  for (int round = 0; round < 20'000; ++round) {
    if (random() % 2 == 0 && !live.empty()) {
      std::swap(live[random() % live.size()], live.back());
      free.give(live.back());
      live.pop_back();
    } else if (const auto n = 1 + random() % 300; const auto at = free.take(n)) {
      live.push_back({*at, *at + n});
    }
    if (round % 100 != 0) {
      continue;
    }
    RangeSet want, got;
    std::size_t nbytes = 0;
    for (const auto& each : live) {
      want.add(each);
      nbytes += each.nbytes();
    }
    EXPECT_EQ(want.nbytes(), nbytes);  // no two overlap
    free.each_taken(k_all, [&](const ByteRange& taken) { got.add(taken); });
    ASSERT_EQ(got, want);
  }
  for (const auto& each : live) {
    free.give(each);
  }
  EXPECT_EQ(free.take(k_all), 0U);
  EXPECT_EQ(free.take(1), std::nullopt);
}

TEST(free_ranges, the_first_range_is_there_or_refused) {
  FreeRanges free{{64, 128}};
  EXPECT_EQ(free.take(64), 64U);
  EXPECT_FALSE(free.take(1));
}

TEST(free_ranges, the_smallest_that_fits_is_taken) {
  FreeRanges free;
  free.give({0, 100});
  free.give({200, 210});
  free.give({300, 320});
  EXPECT_EQ(free.take(10), 200U);
  EXPECT_EQ(free.take(10), 300U);
  EXPECT_EQ(free.take(11), 0U);
}

}  // namespace
}  // namespace isthmus::tracking
