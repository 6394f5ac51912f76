// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/region_list.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace isthmus {
namespace {

using Index = RegionList::Index;
using Rows = std::vector<std::pair<Index, Index>>;

// A region at an address that is never accessed.
Region region(Index first, Index count, std::uint64_t since = 0) {
  Region made;
  made.first = first;
  made.count = count;
  made.since = since;
  made.base = reinterpret_cast<std::byte*>(std::uintptr_t{first} << 40);
  return made;
}

RegionList list_of(const std::vector<Region>& all) {
  RegionList list;
  list.reserve(all.size());
  for (const auto& each : all) {
    list.insert(each);
  }
  return list;
}

Rows rows_of(const RegionList& list) {
  Rows rows;
  list.any_row([&](Index first, Index count) {
    rows.emplace_back(first, count);
    return false;
  });
  return rows;
}

TEST(region_list, finds_the_region_and_the_address_of_a_page) {
  const auto list = list_of({region(20, 5), region(1, 10)});
  EXPECT_EQ(list.find(1)->first, 1U);
  EXPECT_EQ(list.find(10)->first, 1U);
  EXPECT_EQ(list.find(24)->first, 20U);
  EXPECT_EQ(list.address_of(22), list[1].base + 2 * k_pool_page_bytes);
}

TEST(region_list, continues_at_the_next_region_between_two) {
  const auto list = list_of({region(1, 10), region(20, 5)});
  EXPECT_EQ(list.find_from(10)->first, 1U);
  EXPECT_EQ(list.find_from(11)->first, 20U);
  EXPECT_EQ(list.find_from(25), list.end());
}

TEST(region_list, has_the_order_number_of_the_region) {
  const auto list = list_of({region(5, 5, 7), region(20, 5, 9)});
  EXPECT_EQ(list.since(4), 0U);
  EXPECT_EQ(list.since(9), 7U);
  EXPECT_EQ(list.since(20), 9U);
}

TEST(region_list, visits_adjacent_regions_as_one_row) {
  const auto list = list_of({region(1, 10), region(11, 4), region(20, 5)});
  EXPECT_EQ(rows_of(list), (Rows{{1, 14}, {20, 5}}));
  int visited = 0;
  EXPECT_TRUE(list.any_row([&](Index, Index) { return ++visited == 1; }));
  EXPECT_EQ(visited, 1);
}

TEST(region_list, leaves_an_unused_number_between_new_and_old_regions) {
  EXPECT_EQ(RegionList{}.find_numbers(3), 1U);
  const auto list = list_of({region(1, 10), region(16, 5)});
  EXPECT_EQ(list.find_numbers(3), 12U);  // 12 to 14: 11 and 15 remain unused
  EXPECT_EQ(list.find_numbers(4), 22U);
}

TEST(region_list, has_no_numbers_beyond_the_table) {
  const auto list = list_of({region(1, 10)});
  const auto most = PoolPageTable::k_pages - 13;
  EXPECT_EQ(list.find_numbers(most), 12U);
  EXPECT_EQ(list.find_numbers(most + 1), PoolPageTable::k_none);
}

TEST(region_list, erases_and_swaps) {
  auto list = list_of({region(1, 10), region(20, 5)});
  list.erase(list.find(1));
  EXPECT_EQ(rows_of(list), (Rows{{20, 5}}));
  std::vector<Region> others{region(3, 2)};
  list.swap(others);
  EXPECT_EQ(rows_of(list), (Rows{{3, 2}}));
  EXPECT_EQ(others.front().first, 20U);
}

}  // namespace
}  // namespace isthmus
