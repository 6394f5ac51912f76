// SPDX-License-Identifier: Apache-2.0
// Chunks that are hashed late: those that cannot have been written since both sides were equal, and
// those that are being written in place.

#include <gtest/gtest.h>

#include <cstring>

#include "tracked_fixture.hpp"
#include "tracking/hash_memory.hpp"

namespace isthmus::tracking {
namespace {

constexpr auto k_hashed = HashMemory::k_chunk;

class hash_memory_test : public testing::Test {
 protected:
  // Begins a write while there are no other writers.
  std::byte* begin_in_place(const ByteRange& range) {
    auto at = memory_->begin_write(range, true, Writers::none);
    EXPECT_TRUE(at);
    return at ? *at : nullptr;
  }

  memory_pointer memory_ =
      make_tracked({.nbytes = 4 * k_hashed, .mechanism = TrackingMechanism::hashes});
  const ByteRange across_{100, k_hashed + 70};
};

TEST_F(hash_memory_test, a_write_without_other_writers_uses_the_view_itself) {
  auto at = memory_->begin_write(across_, true, Writers::none);
  ASSERT_TRUE(at);
  EXPECT_EQ(*at, memory_->view() + across_.begin);
  ASSERT_TRUE(memory_->end_write(across_, {across_}, *at, Writers::none));
  at = memory_->begin_write(across_, true, Writers::some);
  ASSERT_TRUE(at);
  EXPECT_EQ(*at, memory_->library() + across_.begin);
  ASSERT_TRUE(memory_->end_write(across_, {across_}, *at, Writers::some));
}

TEST_F(hash_memory_test, of_a_write_in_place_nothing_is_found) {
  auto* const at = begin_in_place(across_);
  ASSERT_NE(at, nullptr);
  std::memset(at, 1, across_.nbytes());
  memory_->expect_writers();
  EXPECT_TRUE(taken(*memory_).empty());
  std::memset(at, 2, across_.nbytes());
  EXPECT_TRUE(taken(*memory_).empty());
  ASSERT_TRUE(memory_->end_write(across_, {across_}, at, Writers::some));
  EXPECT_TRUE(taken(*memory_).empty());
  memory_->view()[k_hashed + 80] = std::byte{3};
  EXPECT_EQ(taken(*memory_), (RangeSet{{k_hashed, 2 * k_hashed}}));
}

TEST_F(hash_memory_test, concurrent_writes_beside_it_are_detected) {
  auto* const at = begin_in_place(across_);
  ASSERT_NE(at, nullptr);
  std::memset(at, 1, across_.nbytes());
  memory_->expect_writers();
  memory_->view()[5] = std::byte{3};
  const RangeSet first{{0, k_hashed}};
  EXPECT_EQ(taken(*memory_), first);
  ASSERT_TRUE(memory_->end_write(across_, {across_}, at, Writers::some));
  EXPECT_EQ(taken(*memory_), first);
}

// XXH3 multiplies the halves of each word, xored with its secret, and adds the word itself. If the
// lower half equals the secret's, the product is 0, and only the sum over the words of an XXH3 lane
// counts. The constants are the first two words of the published secret: xxhash.h, XXH3_kSecret.
TEST_F(hash_memory_test, finds_contents_that_collide_under_the_published_secret) {
  constexpr std::uint32_t k_secret[] = {0x396cfeb8, 0x2c81017c};
  constexpr std::size_t k_lane = 64;  // distance of two words of one XXH3 lane
  const auto write = [&](std::uint32_t first, std::uint32_t second) {
    auto* const view = memory_->view();
    std::memcpy(view, &k_secret[0], 4);
    std::memcpy(view + 4, &first, 4);
    std::memcpy(view + k_lane, &k_secret[1], 4);
    std::memcpy(view + k_lane + 4, &second, 4);
  };
  const RangeSet first{{0, k_hashed}};
  memory_->expect_writers();
  write(1000, 2000);
  EXPECT_EQ(taken(*memory_), first);
  ASSERT_TRUE(memory_->snapshot(first, Writers::some));
  EXPECT_TRUE(taken(*memory_).empty());
  write(1001, 1999);
  EXPECT_EQ(taken(*memory_), first);
}

// After the write there are no writers any more.
TEST_F(hash_memory_test, the_end_of_a_write_in_place_discards_the_scan_before_it) {
  auto* const at = begin_in_place(across_);
  ASSERT_NE(at, nullptr);
  std::memset(at, 1, across_.nbytes());
  memory_->expect_writers();
  EXPECT_TRUE(taken(*memory_).empty());
  ASSERT_TRUE(memory_->end_write(across_, {across_}, at, Writers::some));
  ASSERT_TRUE(memory_->snapshot({across_}, Writers::none));
  memory_->expect_writers();
  std::memset(memory_->view() + across_.begin, 0, across_.nbytes());
  EXPECT_EQ(taken(*memory_), (RangeSet{{0, 2 * k_hashed}}));
}

// Writers began and ended while the write was in progress.
TEST_F(hash_memory_test, the_end_of_a_write_in_place_forgets_hashes_of_what_was_there) {
  auto* const at = begin_in_place(across_);
  ASSERT_NE(at, nullptr);
  memory_->expect_writers();
  EXPECT_TRUE(taken(*memory_).empty());
  std::memset(at, 1, across_.nbytes());
  ASSERT_TRUE(memory_->end_write(across_, {across_}, at, Writers::none));
  memory_->expect_writers();
  EXPECT_TRUE(taken(*memory_).empty());
}

TEST_F(hash_memory_test, two_writes_in_place_may_share_a_chunk) {
  const ByteRange one{10, 20}, other{30, 40};
  auto* const at = begin_in_place(one);
  auto* const there = begin_in_place(other);
  ASSERT_TRUE(at != nullptr && there != nullptr);
  memory_->expect_writers();
  std::memset(at, 1, one.nbytes());
  std::memset(there, 1, other.nbytes());
  ASSERT_TRUE(memory_->end_write(one, {one}, at, Writers::some));
  std::memset(there, 2, other.nbytes());
  EXPECT_TRUE(taken(*memory_).empty());
  ASSERT_TRUE(memory_->end_write(other, {other}, there, Writers::some));
  EXPECT_TRUE(taken(*memory_).empty());
}

TEST_F(hash_memory_test, memory_without_writers_is_hashed_when_writers_are_expected) {
  std::memset(memory_->library(), 7, memory_->nbytes());
  ASSERT_TRUE(memory_->publish({{0, memory_->nbytes()}}, Writers::none));
  memory_->expect_writers();
  EXPECT_TRUE(taken(*memory_).empty());
  memory_->view()[3 * k_hashed] = std::byte{1};
  const RangeSet last{{3 * k_hashed, 4 * k_hashed}};
  EXPECT_EQ(taken(*memory_), last);
  auto from = memory_->snapshot(last, Writers::none);
  ASSERT_TRUE(from);
  EXPECT_EQ(*from, memory_->view());
  memory_->expect_writers();
  EXPECT_TRUE(taken(*memory_).empty());
}

TEST_F(hash_memory_test, ranges_found_are_copied_in_the_same_scan) {
  memory_->view()[3 * k_hashed] = std::byte{2};
  for (const int value : {1, 5}) {
    memory_->view()[1] = std::byte(value);
    RangeSet told;
    ASSERT_TRUE(memory_->take_in_parts(
        Writers::some, [&](const ByteRange& part, RangeSet&& found, const std::byte* from) {
          EXPECT_EQ(part, (ByteRange{0, memory_->nbytes()}));
          EXPECT_EQ(from, memory_->library());
          EXPECT_EQ(from[1], std::byte(value));
          told = std::move(found);
          return Result<void>{};
        }));
    RangeSet expected{{0, k_hashed}};
    if (value == 1) {
      expected.add(ByteRange{3 * k_hashed, 4 * k_hashed});
    }
    EXPECT_EQ(told, expected);
  }
  EXPECT_TRUE(taken(*memory_).empty());
}

// Large enough for several threads and several chunks.
TEST(hash_memory_parts, are_reported_in_order_until_one_is_refused_and_the_rest_stays_dirty) {
  constexpr std::size_t nbytes = (std::size_t{70} << 20) + 5;
  const auto memory = make_tracked({.nbytes = nbytes, .mechanism = TrackingMechanism::hashes});
  const auto refuse_from = memory->min_part_bytes();
  std::memset(memory->view(), 1, nbytes);
  std::size_t upto = 0;
  RangeSet told;
  const auto outcome = memory->take_in_parts(
      Writers::some, [&](const ByteRange& part, RangeSet&& found, const std::byte* from) {
        EXPECT_EQ(part.begin, upto);
        EXPECT_GE(part.nbytes(), memory->min_part_bytes());
        EXPECT_EQ(found, RangeSet{part});
        EXPECT_TRUE(std::all_of(from + part.begin, from + part.end,
                                [](std::byte each) { return each == std::byte{1}; }));
        upto = part.end;
        told.add(found);
        // Threads may scan everything before the first part is reported.
        const bool is_refused = part.begin >= refuse_from || part.end == nbytes;
        return is_refused ? Result<void>{Error::no_memory()} : Result<void>{};
      });
  EXPECT_FALSE(outcome);
  RangeSet rest{{0, nbytes}};
  rest.remove(told);
  EXPECT_EQ(taken(*memory), rest);
}

}  // namespace
}  // namespace isthmus::tracking
