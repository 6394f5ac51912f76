// SPDX-License-Identifier: Apache-2.0
// How lists of ranges are checked, sorted, joined, and divided into chunks.

#include "transfer/ranges.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "transfer/copy_chunks.hpp"

namespace isthmus {
namespace {

using bytes = std::vector<std::byte>;
using range_vector = std::vector<CopyRange>;

void expect_told(const Error& told, const std::string& part) {
  EXPECT_NE(std::string{told.message()}.find(part), std::string::npos) << told.message();
}

void expect_ranges(const std::vector<CopyRange>& got, const range_vector& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].destination_offset, want[i].destination_offset) << i;
    EXPECT_EQ(got[i].source_offset, want[i].source_offset) << i;
    EXPECT_EQ(got[i].nbytes, want[i].nbytes) << i;
  }
}

TEST(ranges, that_follow_each_other_are_one) {
  const range_vector given{{500, 100, 10}, {0, 0, 3}, {510, 110, 20}, {530, 131, 1}, {7, 9, 0}};
  const auto list = *list_ranges(given);
  expect_ranges(list.ranges, {{0, 0, 3}, {500, 100, 30}, {530, 131, 1}});
  EXPECT_EQ(list.destination_bytes, 531U);
  EXPECT_EQ(list.source_bytes, 132U);
  EXPECT_EQ(list.nbytes, 34U);
}

TEST(ranges, count_from_the_first_byte_of_each_side) {
  const auto list = *list_ranges(range_vector{{900, 70, 10}, {400, 80, 5}});
  expect_ranges(list.ranges, {{0, 10, 5}, {500, 0, 10}});
  EXPECT_EQ(list.destination_begin, 400U);
  EXPECT_EQ(list.source_begin, 70U);
  EXPECT_EQ(list.destination_bytes, 510U);
  EXPECT_EQ(list.source_bytes, 15U);
}

TEST(ranges, none_is_nothing) {
  const auto list = *list_ranges({});
  EXPECT_TRUE(list.ranges.empty());
  EXPECT_EQ(list.nbytes, 0U);
}

TEST(ranges, that_are_refused) {
  const auto refused = list_ranges(range_vector{{0, 0, 10}, {40, 0, 10}, {9, 50, 2}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.failure().code(), ISTHMUS_ERROR_INVALID_ARGUMENT);
  expect_told(refused.failure(), "ranges 0 and 2");
  expect_told(refused.failure(), "2 from 9");
  for (const CopyRange each : {CopyRange{SIZE_MAX, 0, 1}, {0, SIZE_MAX - 3, 4}, {1, 1, SIZE_MAX}}) {
    const auto too_far = list_ranges(range_vector{{0, 0, 1}, each});
    ASSERT_FALSE(too_far);
    EXPECT_EQ(too_far.failure().code(), ISTHMUS_ERROR_OUT_OF_RANGE);
    expect_told(too_far.failure(), "range 1");
  }
}

// Moves the ranges in chunks of at most `most` bytes, and expects every byte to arrive.
void expect_moved(const range_vector& all, const bytes& from, std::size_t most, Side device_side) {
  bytes got(5000);
  bytes want(5000);
  const RangedCopy what{got.data(), from.data(), all};
  const auto cut = cut_ranges(what, device_side, most);
  ASSERT_LE(cut->bytes(), most);
  for (std::size_t index = 0; index < cut->count(); ++index) {
    bytes packed(cut->bytes());
    cut->gather(index, packed.data());
    cut->scatter(index, packed.data());
  }
  copy_ranges({want.data(), from.data(), all});
  EXPECT_TRUE(got == want) << most;
}

TEST(ranges, in_parts_lose_nothing) {
  std::mt19937_64 random(5);
  bytes from(5000);
  for (auto& each : from) {
    each = std::byte(random());
  }
  for (const std::size_t most : {17U, 32U, 100U, 1000U, 100'000U}) {
    range_vector all;
    for (std::size_t at = 0; at < 4000; at += 250) {
      all.push_back({at + random() % 50, at + random() % 50, 1 + random() % 200});
    }
    expect_moved(all, from, most, Side::destination);
    expect_moved(all, from, most, Side::source);
  }
}

}  // namespace
}  // namespace isthmus
