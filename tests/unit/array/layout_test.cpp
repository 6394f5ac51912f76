// SPDX-License-Identifier: Apache-2.0
// Which elements of a layout share bytes, compared with enumerating every byte.
#include "array/layout.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "array/bounded_sums.hpp"

namespace {

using namespace isthmus;
using numbers = std::vector<std::int64_t>;

isthmus_array_t array_of(Dtype of, const numbers& shape, const numbers& strides) {
  isthmus_array_t made{};
  made.dtype = of;
  made.dimensions = shape.size();
  made.shape = shape.data();
  made.strides = strides.data();
  return made;
}

ArrayLayout make(Dtype of, const numbers& shape, const numbers& strides) {
  auto made = layout_of(array_of(of, shape, strides), "array");
  EXPECT_TRUE(made);
  return *made;
}

// The offset of each element's lowest byte, counted from the lowest byte of the whole layout.
std::vector<std::int64_t> places(const ArrayLayout& of) {
  std::vector<std::int64_t> all{static_cast<std::int64_t>(of.first_offset)};
  for (const auto& along : of.dimensions) {
    std::vector<std::int64_t> next;
    for (const auto at : all) {
      for (std::int64_t n = 0; n < along.count; ++n) next.push_back(at + n * along.stride);
    }
    all = std::move(next);
  }
  return all;
}

std::set<std::int64_t> bytes_of(const ArrayLayout& of, std::int64_t at) {
  std::set<std::int64_t> all;
  for (const auto place : places(of)) {
    for (std::size_t i = 0; i < of.item(); ++i) {
      all.insert(at + place + static_cast<std::int64_t>(i));
    }
  }
  return all;
}

ArrayLayout random_layout(std::mt19937_64& random) {
  const Dtype of = std::array{ISTHMUS_INT8, ISTHMUS_INT16, ISTHMUS_FLOAT32}.at(random() % 3);
  numbers shape, strides;
  for (std::size_t i = random() % 4; i != 0; --i) {
    shape.push_back(static_cast<std::int64_t>(1 + random() % 5));
    strides.push_back(static_cast<std::int64_t>(random() % 41) - 20);
  }
  return make(of, shape, strides);
}

TEST(layouts, span_what_their_elements_do) {
  std::mt19937_64 random(3);
  for (int turn = 0; turn < 2000; ++turn) {
    const auto layout = random_layout(random);
    const auto all = bytes_of(layout, 0);
    EXPECT_EQ(*all.begin(), 0);
    EXPECT_EQ(static_cast<std::size_t>(*all.rbegin()) + 1, layout.nbytes);
  }
}

TEST(layouts, share_bytes_with_themselves) {
  std::mt19937_64 random(4);
  int shared = 0;
  for (int turn = 0; turn < 20'000; ++turn) {
    const auto layout = random_layout(random);
    const bool want = bytes_of(layout, 0).size() != places(layout).size() * layout.item();
    EXPECT_EQ(!check_disjoint(layout), want);
    shared += want ? 1 : 0;
  }
  EXPECT_GT(shared, 2000);
  EXPECT_LT(shared, 18'000);
}

TEST(layouts, share_bytes_with_other_layouts) {
  std::mt19937_64 random(5);
  int shared = 0;
  for (int turn = 0; turn < 20'000; ++turn) {
    const auto one = random_layout(random);
    const auto other = random_layout(random);
    const auto at = static_cast<std::int64_t>(1000 + random() % 100);
    const auto first = bytes_of(one, 1000);
    const auto second = bytes_of(other, at);
    const bool want = std::any_of(first.begin(), first.end(),
                                  [&](std::int64_t byte) { return second.contains(byte); });
    EXPECT_EQ(may_share_bytes(one, 1000, other, static_cast<std::uintptr_t>(at)), want);
    shared += want ? 1 : 0;
  }
  EXPECT_GT(shared, 1000);
}

TEST(layouts, with_no_element_share_nothing) {
  const auto none = make(ISTHMUS_INT8, {3, 0}, {INT64_MAX, INT64_MIN});
  EXPECT_TRUE(none.is_empty());
  EXPECT_TRUE(check_disjoint(none));
  EXPECT_FALSE(may_share_bytes(none, 100, none, 100));
}

// A knapsack problem that no search finishes in reasonable time.
TEST(layouts, above_the_bound_may_share) {
  numbers shape, strides;
  for (std::int64_t i = 0; i < 30; ++i) {
    shape.push_back(3);
    strides.push_back(2 * (1'000'003 + 97 * i * i));
  }
  const auto hard = make(ISTHMUS_INT8, shape, strides);
  const auto refused = check_disjoint(hard);
  ASSERT_FALSE(refused);
  EXPECT_NE(std::string(refused.failure().message()).find("provably no"), std::string::npos);
  EXPECT_TRUE(may_share_bytes(hard, 2'000'000, hard, 2'000'000 + 44'444'442));
  std::vector<BoundedTerm> terms;
  for (const auto stride : strides) terms.push_back({static_cast<std::uint64_t>(stride), 4});
  EXPECT_EQ(can_sum_to(terms, 44'444'442 + hard.nbytes - 1), SumAnswer::unknown);
}

TEST(layouts, that_are_invalid_are_rejected) {
  const auto refused = [](Dtype of, const numbers& shape, const numbers& strides, Status why,
                          const std::string& part) {
    const auto got = layout_of(array_of(of, shape, strides), "source");
    ASSERT_FALSE(got);
    EXPECT_EQ(got.failure().code(), why);
    EXPECT_NE(std::string(got.failure().message()).find(part), std::string::npos)
        << got.failure().message();
  };
  refused(0, {}, {}, ISTHMUS_ERROR_INVALID_ARGUMENT, "0 is not a dtype");
  refused(ISTHMUS_INT8, numbers(65, 1), numbers(65, 1), ISTHMUS_ERROR_INVALID_ARGUMENT,
          "65 dimensions: the limit is 64");
  refused(ISTHMUS_INT8, {1, -2}, {1, 1}, ISTHMUS_ERROR_INVALID_ARGUMENT, "-2 elements");
  refused(ISTHMUS_INT8, {INT64_MAX}, {INT64_MAX}, ISTHMUS_ERROR_OUT_OF_RANGE, "exceed");
  refused(ISTHMUS_INT8, {INT64_MAX}, {INT64_MIN}, ISTHMUS_ERROR_OUT_OF_RANGE, "exceed");
  refused(ISTHMUS_INT8, {3, 3}, {INT64_C(1) << 59, INT64_C(-1) << 59}, ISTHMUS_ERROR_OUT_OF_RANGE,
          "exceed");
  auto nothing = array_of(ISTHMUS_INT8, {}, {});
  nothing.dimensions = 1;
  nothing.shape = nullptr;
  EXPECT_FALSE(layout_of(nothing, "source"));
}

TEST(layouts, are_broadcast_as_numpy_does) {
  const auto to = make(ISTHMUS_INT8, {2, 3, 4}, {12, 4, 1});
  const auto strides = [&](const numbers& shape, const numbers& given) {
    auto made = broadcast(make(ISTHMUS_INT8, shape, given), to);
    numbers all;
    for (std::size_t i = 0; made && i < 3; ++i) all.push_back(made->dimensions[i].stride);
    return all;
  };
  EXPECT_EQ(strides({}, {}), (numbers{0, 0, 0}));
  EXPECT_EQ(strides({4}, {-5}), (numbers{0, 0, -5}));
  EXPECT_EQ(strides({3, 1}, {7, 9}), (numbers{0, 7, 0}));
  EXPECT_EQ(strides({1, 1, 2, 1, 4}, {9, 9, 8, 9, 1}), (numbers{8, 0, 1}));
  EXPECT_EQ(strides({3}, {1}), numbers{});
  EXPECT_EQ(strides({2, 2, 3, 4}, {1, 1, 1, 1}), numbers{});
  EXPECT_EQ(strides({2, 0, 4}, {1, 1, 1}), numbers{});
  const auto refused = broadcast(make(ISTHMUS_INT8, {5}, {1}), to);
  EXPECT_STREQ(refused.failure().message(),
               "a source of shape (5,) cannot be broadcast to the destination's (2, 3, 4)");
  const auto none = make(ISTHMUS_INT8, {2, 0, 4}, {1, 1, 1});
  EXPECT_TRUE(broadcast(make(ISTHMUS_INT8, {1, 4}, {1, 1}), none));
  EXPECT_FALSE(broadcast(make(ISTHMUS_INT8, {3, 4}, {1, 1}), none));
}

TEST(sums, that_are_bounded) {
  std::mt19937_64 random(6);
  for (int turn = 0; turn < 5000; ++turn) {
    std::vector<BoundedTerm> terms;
    std::set<std::uint64_t> reached{0};
    for (std::size_t i = random() % 4; i != 0; --i) {
      terms.push_back({random() % 9, random() % 5});
      std::set<std::uint64_t> next;
      for (const auto sum : reached) {
        for (std::uint64_t n = 0; n <= terms.back().max_count; ++n) {
          next.insert(sum + n * terms.back().stride);
        }
      }
      reached = std::move(next);
    }
    for (std::uint64_t wanted = 0; wanted < 100; ++wanted) {
      EXPECT_EQ(can_sum_to(terms, wanted),
                reached.contains(wanted) ? SumAnswer::yes : SumAnswer::no);
    }
  }
}

}  // namespace
