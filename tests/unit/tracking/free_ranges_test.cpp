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
  free.release({0, k_all});
  std::vector<ByteRange> live;
  std::mt19937_64 random{3};
  for (int round = 0; round < 20'000; ++round) {
    if (random() % 2 == 0 && !live.empty()) {
      std::swap(live[random() % live.size()], live.back());
      free.release(live.back());
      live.pop_back();
    } else if (const auto n = 1 + random() % 300; const auto at = free.allocate(n)) {
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
    free.visit_allocated(k_all, [&](const ByteRange& taken) { got.add(taken); });
    ASSERT_EQ(got, want);
  }
  for (const auto& each : live) {
    free.release(each);
  }
  EXPECT_EQ(free.allocate(k_all), 0U);
  EXPECT_EQ(free.allocate(1), std::nullopt);
}

TEST(free_ranges, the_first_range_is_there_or_refused) {
  FreeRanges free{{64, 128}};
  EXPECT_EQ(free.allocate(64), 64U);
  EXPECT_FALSE(free.allocate(1));
}

TEST(free_ranges, the_smallest_that_fits_is_taken) {
  FreeRanges free;
  free.release({0, 100});
  free.release({200, 210});
  free.release({300, 320});
  EXPECT_EQ(free.allocate(10), 200U);
  EXPECT_EQ(free.allocate(10), 300U);
  EXPECT_EQ(free.allocate(11), 0U);
}

}  // namespace
}  // namespace isthmus::tracking
