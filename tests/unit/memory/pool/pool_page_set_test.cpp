// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/pool_page_set.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>

namespace isthmus {
namespace {

using index = PoolPageSet::Index;

index next_in(const std::set<index>& known, index from) {
  const auto found = known.lower_bound(from);
  return found == known.end() ? PoolPageSet::k_none : *found;
}

TEST(page_set, has_its_first_and_last_number) {
  const auto set = std::make_unique<PoolPageSet>();
  EXPECT_EQ(set->next(1), PoolPageSet::k_none);
  set->insert(1);
  set->insert(PoolPageSet::k_end - 1);
  EXPECT_EQ(set->next(1), 1U);
  EXPECT_EQ(set->next(2), PoolPageSet::k_end - 1);
  EXPECT_EQ(set->next(PoolPageSet::k_end - 1), PoolPageSet::k_end - 1);
  EXPECT_EQ(set->next(PoolPageSet::k_end), PoolPageSet::k_none);
  set->erase(PoolPageSet::k_end - 1);
  EXPECT_EQ(set->next(2), PoolPageSet::k_none);
  EXPECT_EQ(set->size(), 1U);
}

// Numbers close together and far apart, and at word boundaries of every level.
index some_number(std::mt19937& random) {
  const auto below = [&](index end) { return static_cast<index>(random()) % end; };
  const auto near_border = [&](unsigned bits) { return ((1 + below(3)) << bits) - 2 + below(4); };
  switch (below(5)) {
    case 0: return 1 + below(PoolPageSet::k_end - 1);
    case 1: return near_border(6);
    case 2: return near_border(12);
    case 3: return near_border(18);
    default: return 1 + below(200);
  }
}

TEST(page_set, does_what_a_sorted_set_does) {
  const auto set = std::make_unique<PoolPageSet>();
  std::set<index> known;
  std::mt19937 random{3};
  for (int step = 0; step < 100'000; ++step) {
    const auto number = some_number(random);
    if (random() % 2 == 0) {
      set->insert(number);
      known.insert(number);
    } else {
      set->erase(number);
      known.erase(number);
    }
    const auto from = some_number(random);
    ASSERT_EQ(set->has(from), known.count(from) != 0) << from;
    ASSERT_EQ(set->next(from), next_in(known, from)) << from;
    ASSERT_EQ(set->size(), known.size());
  }
  while (!known.empty()) {
    set->erase(*known.begin());
    known.erase(known.begin());
  }
  EXPECT_EQ(set->next(1), PoolPageSet::k_none);
}

}  // namespace
}  // namespace isthmus
