// SPDX-License-Identifier: Apache-2.0
// Sets of byte ranges, compared with a model of one bool for each byte.

#include "core/range_set.hpp"

#include <gtest/gtest.h>

#include <random>

#include "support/without_memory.hpp"

namespace isthmus {
namespace {

using model = std::vector<bool>;

constexpr std::size_t k_bytes = 200;

model modelled(const RangeSet& of) {
  model all(k_bytes);
  for (const auto& each : of) {
    std::fill(all.begin() + static_cast<std::ptrdiff_t>(each.begin),
              all.begin() + static_cast<std::ptrdiff_t>(each.end), true);
  }
  return all;
}

template <class Combine>
model combined(const model& one, const model& other, Combine combine) {
  model all(k_bytes);
  std::transform(one.begin(), one.end(), other.begin(), all.begin(), combine);
  return all;
}

void expect_in_order(const RangeSet& all) {
  for (auto each = all.begin(); each != all.end(); ++each) {
    EXPECT_LT(each->begin, each->end);
    EXPECT_TRUE(each == all.begin() || std::prev(each)->end < each->begin);
  }
}

class range_set_test : public testing::Test {
 protected:
  ByteRange any_range() {
    const auto begin = random_() % k_bytes;
    return {begin, begin + random_() % std::min<std::size_t>(k_bytes - begin + 1, 20)};
  }
  RangeSet any_set() {
    RangeSet made;
    for (auto left = random_() % 12; left != 0; --left) {
      made.add(any_range());
    }
    return made;
  }
  std::mt19937_64 random_{5};
};

TEST_F(range_set_test, has_what_was_added) {
  for (int round = 0; round < 2000; ++round) {
    RangeSet all;
    model want(k_bytes);
    for (int i = 0; i < 12; ++i) {
      const auto next = any_range();
      all.add(next);
      for (auto at = next.begin; at < next.end; ++at) {
        want[at] = true;
      }
      ASSERT_EQ(modelled(all), want);
      expect_in_order(all);
      EXPECT_EQ(all.nbytes(), static_cast<std::size_t>(std::count(want.begin(), want.end(), true)));
      EXPECT_EQ(all.empty(), all.nbytes() == 0);
    }
  }
}

TEST_F(range_set_test, makes_a_prepared_change_without_memory) {
  for (int round = 0; round < 2000; ++round) {
    const auto other = any_set();
    for (const bool adds : {false, true}) {
      auto changed = any_set();
      auto want = changed;
      adds ? want.add(other) : want.remove(other);
      const auto prepared = adds ? changed.prepare_add(other) : changed.prepare_remove(other);
      {
        const support::without_memory now;
        changed.apply(prepared);
      }
      ASSERT_EQ(changed, want);
    }
  }
}

TEST_F(range_set_test, is_combined_with_other_sets) {
  for (int round = 0; round < 5000; ++round) {
    const auto one = any_set();
    const auto other = any_set();
    const auto first = modelled(one);
    const auto second = modelled(other);
    auto both = one;
    both.add(other);
    EXPECT_EQ(modelled(both), combined(first, second, std::logical_or<>{}));
    auto left = one;
    left.remove(other);
    EXPECT_EQ(modelled(left), combined(first, second, [](bool a, bool b) { return a && !b; }));
    EXPECT_EQ(modelled(one.common(other)), combined(first, second, std::logical_and<>{}));
    EXPECT_EQ(one.common(other), other.common(one));
    for (const auto& each : {both, left, one.common(other)}) {
      expect_in_order(each);
    }
  }
}

TEST_F(range_set_test, reports_common_bytes) {
  for (int round = 0; round < 5000; ++round) {
    const auto all = any_set();
    const auto asked = any_range();
    RangeSet one;
    one.add(asked);
    EXPECT_EQ(all.overlaps(asked), !all.common(one).empty());
  }
}

TEST_F(range_set_test, fills_small_gaps) {
  const RangeSet all{{0, 10}, {14, 20}, {25, 30}};
  EXPECT_EQ(all.joined(0), all);
  EXPECT_EQ(all.joined(4), (RangeSet{{0, 20}, {25, 30}}));
  EXPECT_EQ(all.joined(5), (RangeSet{{0, 30}}));
  EXPECT_EQ(RangeSet{}.joined(5), RangeSet{});
}

TEST_F(range_set_test, of_empty_ranges_is_empty) {
  RangeSet all{{5, 5}, {9, 3}};
  EXPECT_TRUE(all.empty());
  all.add(RangeSet{});
  all.remove(RangeSet{{0, 100}});
  EXPECT_TRUE(all.empty());
  EXPECT_FALSE(all.overlaps({0, 100}));
  all.add(ByteRange{3, 4});
  EXPECT_FALSE(all.overlaps({3, 3}));
  all.clear();
  EXPECT_EQ(all.size(), 0U);
}

}  // namespace
}  // namespace isthmus
