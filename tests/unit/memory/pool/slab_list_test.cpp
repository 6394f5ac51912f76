// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/slab_list.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "memory/pool/size_class.hpp"
#include "memory/pool/slab_store.hpp"
#include "support/sizes.hpp"

namespace isthmus {
namespace {

constexpr QueueFences::EntryIndex k_mine = 2;
constexpr QueueFences::EntryIndex k_other = 3;
constexpr Ticket k_behind_mine{k_mine, 1};  // no fence of these entries completes in this test
constexpr Ticket k_behind_other{k_other, 1};

class slab_lists : public testing::Test {
 protected:
  static constexpr auto k_shape = SlabShape::of_first(4096);

  ~slab_lists() override {
    for (auto* each : made_) {
      deallocate_slab_record(*each);
    }
  }
  // A slab at an address that is never accessed, which has all its blocks.
  Slab& make() {
    auto& in = *allocate_slab_record(k_shape);
    made_.push_back(&in);
    in.base.store(reinterpret_cast<std::byte*>(made_.size() << 30));
    in.free_count = in.blocks;
    in.waiting = 0;
    in.until = {};
    std::fill_n(in.free_bitmap(), in.words(), ~std::uint64_t{0});
    std::fill_n(in.waiting_bitmap(), in.words(), std::uint64_t{0});
    return in;
  }
  std::vector<void*> add(Slab& made, std::size_t count) {
    std::vector<void*> taken(count);
    taken.resize(list_.add(made, taken));
    return taken;
  }
  std::vector<void*> take(std::size_t most, QueueFences::EntryIndex whom) {
    std::vector<void*> taken(most);
    taken.resize(list_.take(taken, whom).count);
    return taken;
  }
  // Returns the slab if it has all its blocks afterwards.
  Slab* give(Slab& to, const std::vector<void*>& blocks, Ticket freed) {
    Slab* whole = nullptr;
    for (auto* each : blocks) {
      whole = list_.return_block(to, each, freed);
    }
    return whole;
  }

  static_assert(k_shape.blocks == 64);
  Ref<QueueFences> fences_ = make_ref<QueueFences>();
  SlabList list_{*fences_};
  std::vector<Slab*> made_;
};

TEST_F(slab_lists, serve_blocks_of_the_fullest_first) {
  auto& full = make();
  auto& empty = make();
  auto first = add(full, 60);
  auto second = add(empty, 1);
  ASSERT_EQ(first.size() + second.size(), 61U);
  for (auto* each : take(4, k_mine)) {
    EXPECT_NE(full.block_at(each), Slab::k_no_block);
  }
  EXPECT_EQ(full.free_count, 0U);
  EXPECT_NE(empty.block_at(take(1, k_mine).at(0)), Slab::k_no_block);
}

TEST_F(slab_lists, damage_is_found) {
  auto& in = make();
  const auto taken = add(in, 10);
  ASSERT_EQ(list_.find_damaged(), nullptr);
  in.free_count += 1;
  EXPECT_EQ(list_.find_damaged(), &in) << "counts more than it has";
  in.free_count -= 1;
  in.mark_live(in.block_at(taken[0]));
  EXPECT_EQ(list_.find_damaged(), nullptr);
  in.mark_live(63);
  EXPECT_EQ(list_.find_damaged(), &in) << "a block in two places";
  EXPECT_TRUE(in.mark_freed(63));
  EXPECT_EQ(list_.find_damaged(), nullptr);
}

TEST_F(slab_lists, keep_what_waits_for_its_own_queue) {
  auto& in = make();
  const auto taken = add(in, 64);
  EXPECT_EQ(give(in, {taken[0], taken[1]}, k_behind_mine), nullptr);
  EXPECT_EQ(in.waiting, 2U);
  EXPECT_TRUE(take(8, k_other).empty());
  EXPECT_TRUE(take(8, QueueFences::k_no_queue).empty());
  EXPECT_EQ(take(8, k_mine).size(), 2U);
  EXPECT_EQ(in.waiting, 0U);
}

TEST_F(slab_lists, what_waits_holds_nothing_else_back) {
  auto& in = make();
  const auto taken = add(in, 10);
  EXPECT_EQ(give(in, {taken[0]}, k_behind_mine), nullptr);
  EXPECT_EQ(take(64, k_other).size(), 54U);
  EXPECT_EQ(give(in, {taken[1]}, k_behind_mine), nullptr);
  EXPECT_EQ(give(in, {taken[2]}, k_behind_other), nullptr);
  EXPECT_TRUE(take(1, k_mine).empty()) << "behind more than one queue";
  EXPECT_EQ(in.until.entry(), QueueFences::k_several);
}

TEST_F(slab_lists, serve_blocks_without_pending_work_to_any_queue) {
  auto& in = make();
  const auto taken = add(in, 64);
  EXPECT_EQ(give(in, {taken[0]}, {}), nullptr);
  EXPECT_EQ(give(in, {taken[1]}, {k_mine, 0}), nullptr) << "its fence has passed";
  EXPECT_EQ(in.waiting, 0U);
  EXPECT_EQ(take(8, k_other).size(), 2U);
}

// It is unknown when the use ends. A joined ticket does not end either when its other part has.
TEST_F(slab_lists, keep_blocks_with_a_use_that_never_ends) {
  auto& in = make();
  const auto blocks = add(in, 64);
  EXPECT_EQ(give(in, {blocks[0]}, Ticket::never()), nullptr);
  EXPECT_EQ(give(in, {blocks[1]}, k_behind_other), nullptr);
  EXPECT_EQ(in.until, Ticket::never());
  EXPECT_EQ(fences_->joined(k_behind_mine, Ticket::never()), Ticket::never());
  EXPECT_FALSE(fences_->is_usable(Ticket::never(), QueueFences::k_any_queue));
}

TEST_F(slab_lists, release_a_slab_that_has_all_its_blocks) {
  auto& in = make();
  const auto taken = add(in, 64);
  EXPECT_EQ(give(in, taken, k_behind_mine), &in);
  EXPECT_EQ(in.until, k_behind_mine);
  EXPECT_TRUE(take(1, k_mine).empty());
  auto& untouched = make();
  EXPECT_TRUE(add(untouched, 0).empty());
  EXPECT_EQ(list_.take_unused_slab(), &untouched);
  EXPECT_EQ(list_.take_unused_slab(), nullptr);
}

// Relative to the memory that they describe, for all but the first slabs of a class. Including 40
// bytes for each page (`grain`) in the page map and the page table: at most 0.4 %, and 0.2 % for
// blocks of 4 KiB or more.
TEST(slab_records, are_small_beside_their_memory) {
  constexpr SizeClasses k_all{SizeClasses::k_smallest_unit};
  for (unsigned each = 0; each < k_all.count(); ++each) {
    const auto shape = SlabShape::of_later(k_all.bytes_of(each));
    const auto described = std::size_t{shape.pages} * k_pool_page_bytes;
    const auto notes = round_up(Slab::bytes_for(shape), Slab::k_line) + shape.pages * 40;
    const std::size_t bound = shape.block_bytes >= 4 * support::k_kib ? 500 : 250;
    EXPECT_LE(notes * bound, described) << k_all.bytes_of(each);
  }
}

}  // namespace
}  // namespace isthmus
