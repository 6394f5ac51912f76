// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/central_lists.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "memory/pool/page_map.hpp"
#include "memory/pool/pool_page.hpp"
#include "memory/pool/slab_store.hpp"

namespace isthmus {
namespace {

constexpr std::size_t k_block_bytes = 4096;
constexpr auto k_slab_shape = SlabShape::of_first(k_block_bytes);
constexpr SizeClasses k_finest{SizeClasses::k_smallest_unit};
constexpr unsigned k_class = k_finest.class_of(k_block_bytes);
constexpr std::size_t k_in_batch = 16;
constexpr QueueFences::EntryIndex k_whoever = QueueFences::k_no_queue;

// Slabs at addresses that are never accessed.
class central_shards : public testing::Test {
 protected:
  using blocks = std::vector<void*>;

  ~central_shards() override {
    for (auto* each : made_) {
      process_page_map.clear_slab(each->address_of(0), each->pages());
      deallocate_slab_record(*each);
    }
    process_page_map.remove(at(0), k_pages);
  }
  void SetUp() override {
    ASSERT_TRUE(process_page_map.prepare(at(0), k_pages));
    process_page_map.enter(at(0), k_pages, records_.data());
  }
  // Adds a slab to the lists and allocates `count` of its blocks at once.
  blocks add(unsigned shard, std::size_t count) {
    auto& in = *allocate_slab_record(k_slab_shape);
    in.base.store(at(made_.size() * k_slab_shape.pages));
    in.free_count = in.blocks;
    in.waiting = 0;
    in.until = {};
    std::fill_n(in.free_bitmap(), in.words(), ~std::uint64_t{0});
    std::fill_n(in.waiting_bitmap(), in.words(), std::uint64_t{0});
    in.clear_live_marks();
    made_.push_back(&in);
    process_page_map.set_slab(in.address_of(0), in.pages(), in, k_class);
    blocks taken(count);
    taken.resize(lists_.add(k_class, in, taken, shard));
    return taken;
  }
  blocks own(unsigned shard, std::size_t most) {
    blocks taken(most);
    taken.resize(lists_.take_own(k_class, taken, k_whoever, shard).count);
    return taken;
  }
  blocks others(unsigned shard, std::size_t most) {
    blocks taken(most);
    taken.resize(lists_.take_other_shards(k_class, taken, k_whoever, shard).count);
    return taken;
  }
  // Returns the number of slabs that have all their blocks afterwards.
  std::size_t give(unsigned shard, std::span<void* const> given) {
    return length(lists_.return_blocks(k_class, given, {}, shard));
  }
  std::size_t flush() { return length(lists_.flush(k_class)); }
  static std::size_t length(const Slab* first) {
    std::size_t count = 0;
    for (; first != nullptr; first = first->next) {
      ++count;
    }
    return count;
  }
  static std::span<void* const> one(void* const& block) { return {&block, 1}; }

  static constexpr std::size_t k_slabs = 16;
  static constexpr std::size_t k_pages = k_slabs * k_slab_shape.pages;
  static_assert(k_slab_shape.blocks == 64);

  Ref<QueueFences> fences_ = make_ref<QueueFences>();
  CentralLists lists_{*fences_, {}, k_finest, [](std::size_t) { return k_in_batch; }};
  std::vector<Slab*> made_;

 private:
  static std::byte* at(std::size_t grain) {
    return reinterpret_cast<std::byte*>((std::uintptr_t{7} << 40) + grain * k_pool_page_bytes);
  }
  alignas(64) std::array<PoolPage, k_pages> records_{};
};

TEST_F(central_shards, serve_their_own_threads_first) {
  const auto first = add(1, 8);
  EXPECT_EQ(first.size(), 8U);
  EXPECT_TRUE(own(0, 8).empty());
  EXPECT_TRUE(own(2, 8).empty());
  EXPECT_EQ(own(1, 8).size(), 8U);
}

TEST_F(central_shards, serve_threads_of_other_shards) {
  const auto first = add(1, 8);
  EXPECT_TRUE(others(1, 8).empty());
  EXPECT_EQ(others(0, 100).size(), 56U);
  EXPECT_TRUE(others(2, 1).empty());
  EXPECT_EQ(give(2, first), 0U);  // fewer than a batch
  EXPECT_EQ(others(3, 100).size(), 8U);
}

TEST_F(central_shards, a_block_returns_to_its_shard_and_a_batch_does_not) {
  const auto taken = add(1, 64);
  EXPECT_EQ(give(0, one(taken[0])), 0U);
  EXPECT_TRUE(own(0, 1).empty());
  EXPECT_EQ(own(1, 8), blocks{taken[0]});
  EXPECT_TRUE(own(2, 1).empty());
  EXPECT_EQ(give(2, std::span{taken}.first(k_in_batch)), 0U);
  EXPECT_TRUE(own(1, 1).empty());
  EXPECT_EQ(own(2, 64).size(), k_in_batch);
}

TEST_F(central_shards, a_batch_of_several_shards_is_split_where_it_does_not_fit) {
  auto here = add(1, 64);
  const auto there = add(2, 64);
  for (std::size_t i = 0; i < here.size(); i += 2) {
    here[i] = there[i];
  }
  for (std::size_t i = 0; i + k_in_batch < here.size(); i += k_in_batch - 1) {
    EXPECT_EQ(give(0, std::span{here}.subspan(i, k_in_batch - 1)), 0U);
  }
  EXPECT_TRUE(own(0, 1).empty());
  EXPECT_EQ(own(1, 64).size(), 30U);
  EXPECT_EQ(own(2, 64).size(), 30U);
}

TEST_F(central_shards, release_slabs_that_have_all_their_blocks) {
  const auto first = add(1, 64);
  const auto second = add(2, 64);
  add(3, 0);
  EXPECT_EQ(lists_.slabs(k_class), 3U);
  EXPECT_EQ(give(0, first), 1U);
  EXPECT_EQ(lists_.slabs(k_class), 2U);
  for (std::size_t i = 0; i < second.size(); i += k_in_batch) {
    EXPECT_EQ(give(3, std::span{second}.subspan(i, k_in_batch)), 0U);
  }
  EXPECT_EQ(flush(), 2U);
  EXPECT_EQ(lists_.slabs(k_class), 0U);
  EXPECT_EQ(lists_.free_bytes(), 0U);
}

TEST_F(central_shards, know_how_much_is_free) {
  const auto first = add(1, 8);
  EXPECT_EQ(lists_.free_bytes(), 56 * k_block_bytes);
  EXPECT_EQ(others(0, 16).size(), 16U);
  EXPECT_EQ(lists_.free_bytes(), 40 * k_block_bytes);
  EXPECT_EQ(give(2, first), 0U);
  EXPECT_EQ(lists_.free_bytes(), 48 * k_block_bytes);
}

TEST_F(central_shards, damage_is_found_in_each) {
  add(5, 8);
  EXPECT_TRUE(lists_.verify());
  made_.front()->free_count -= 1;
  EXPECT_FALSE(lists_.verify());
  made_.front()->free_count += 1;
}

TEST_F(central_shards, swap_blocks_among_threads_and_lose_none) {
  constexpr unsigned k_shards_here = 8;
  for (unsigned shard = 0; shard < k_shards_here; ++shard) {
    add(shard, 1);  // so that no slab ever becomes entirely free
  }
  std::array<std::atomic<bool>, std::size_t{k_shards_here} * k_slab_shape.blocks> taken{};
  const auto is_taken = [&](const void* block) -> std::atomic<bool>& {
    const auto* const first = made_.front()->address_of(0);
    return taken.at(static_cast<std::size_t>(static_cast<const std::byte*>(block) - first) /
                    k_block_bytes);
  };
  const auto give_back = [&](unsigned shard, blocks& mine, std::size_t count) {
    const auto back = std::span{mine}.last(count);
    for (auto* each : back) {
      is_taken(each) = false;
    }
    EXPECT_EQ(give(shard, back), 0U);
    mine.resize(mine.size() - count);
  };
  const auto work = [&](unsigned shard) {
    std::mt19937 random(shard);
    blocks mine;
    for (int round = 0; round < 3000; ++round) {
      const auto most = random() % k_in_batch + 1;
      for (auto* each : random() % 2 == 0 ? own(shard, most) : others(shard, most)) {
        EXPECT_FALSE(is_taken(each).exchange(true));
        mine.push_back(each);
      }
      give_back(shard, mine, std::min<std::size_t>(mine.size(), random() % 20));
    }
    give_back(shard, mine, mine.size());
  };
  std::vector<std::thread> threads;
  for (unsigned shard = 0; shard < 4; ++shard) {
    threads.emplace_back(work, shard);
  }
  for (auto& each : threads) {
    each.join();
  }
  EXPECT_TRUE(lists_.verify());
  EXPECT_EQ(flush(), 0U);
  const std::size_t all = k_shards_here * (k_slab_shape.blocks - 1);
  EXPECT_EQ(lists_.free_bytes(), all * k_block_bytes);
  EXPECT_EQ(own(0, all).size() + others(0, all).size(), 2 * (k_slab_shape.blocks - 1));
}

}  // namespace
}  // namespace isthmus
