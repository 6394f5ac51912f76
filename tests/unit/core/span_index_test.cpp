// SPDX-License-Identifier: Apache-2.0
// Finding items by the bytes that they span, compared with a linear search.

#include "core/span_index.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <random>
#include <set>
#include <vector>

namespace isthmus {
namespace {

constexpr auto k_last = std::numeric_limits<std::size_t>::max();
using index_of_numbers = SpanIndex<int, const int>;

class span_index_test : public testing::Test {
 protected:
  // A short or long range, near the beginning, the end or the middle of the addresses.
  ByteRange any() {
    constexpr std::array<std::size_t, 4> k_bases{0, k_last / 2 - 50, k_last / 2 + 50, k_last - 100};
    const auto place = [&] { return k_bases.at(random_() % k_bases.size()) + random_() % 100; };
    for (;;) {
      const auto begin = place(), end = random_() % 2 == 0 ? place() : begin + 1 + random_() % 9;
      if (begin < end) {
        return {begin, end};
      }
    }
  }

  std::mt19937 random_{7};
};

TEST_F(span_index_test, finds_all_that_overlap) {
  constexpr int k_items = 40;
  for (int round = 0; round < 500; ++round) {
    std::array<int, k_items> numbers{};
    std::vector<ByteRange> spans;
    index_of_numbers index;
    for (int each = 0; each < k_items; ++each) {
      numbers.at(static_cast<std::size_t>(each)) = each;
      spans.push_back(any());
      index.add(index_of_numbers::make_entry({}, 0, numbers.at(static_cast<std::size_t>(each))),
                spans.back(), each);
    }
    const auto wanted = any();
    std::set<int> found;
    index.visit_near(wanted, [&](int each) { EXPECT_TRUE(found.insert(each).second); });
    for (int each = 0; each < k_items; ++each) {
      if (spans[static_cast<std::size_t>(each)].overlaps(wanted)) {
        EXPECT_TRUE(found.contains(each)) << "round " << round;
      }
    }
  }
}

}  // namespace
}  // namespace isthmus
