// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <span>
#include <thread>
#include <vector>

#include "memory/pool/size_class.hpp"
#include "memory/pool/slab.hpp"
#include "memory/pool/slab_store.hpp"

namespace isthmus {
namespace {

constexpr SizeClasses k_slab_classes{SizeClasses::k_smallest_unit};
constexpr std::uintptr_t k_slab_base = std::uintptr_t{5} << 30;  // never accessed

const std::byte* slab_address(std::size_t offset) {
  return reinterpret_cast<const std::byte*>(k_slab_base + offset);
}

// Visits a slab of every class in turn, with both kinds of live marks (bits and bytes).
template <class Visit>
void each_slab(Visit&& visit) {
  for (unsigned each = 0; each < k_slab_classes.count(); ++each) {
    const auto nbytes = k_slab_classes.bytes_of(each);
    for (const auto& shape : {SlabShape::of_first(nbytes), SlabShape::of_later(nbytes)}) {
      auto* made = allocate_slab_record(shape);
      ASSERT_NE(made, nullptr);
      made->base.store(const_cast<std::byte*>(slab_address(0)));
      made->clear_live_marks();
      EXPECT_EQ(made->pages(), shape.pages);
      visit(*made);
      deallocate_slab_record(*made);
    }
  }
}

TEST(slabs, find_the_block_of_every_address) {
  each_slab([](Slab& in) {
    for (std::uint32_t block = 0; block < in.blocks; ++block) {
      const auto offset = std::size_t{block} * in.block_bytes;
      ASSERT_EQ(in.block_at(slab_address(offset)), block);
      ASSERT_EQ(in.number_of(slab_address(offset)), block);
      ASSERT_EQ(in.block_containing(slab_address(offset + in.block_bytes - 1)), block);
      ASSERT_EQ(in.block_at(slab_address(offset + 1)), Slab::k_no_block);
      ASSERT_EQ(in.block_at(slab_address(offset + in.block_bytes - 1)), Slab::k_no_block);
    }
  });
}

TEST(slabs, have_no_block_beyond_their_own) {
  each_slab([](Slab& in) {
    const auto end = std::size_t{in.blocks} * in.block_bytes;
    std::vector<std::size_t> beyond{end, end + 1, std::size_t{0} - 1, std::size_t{0} - 64};
    for (unsigned bit = 22; bit < 64; ++bit) {  // stale pointers, anywhere
      beyond.push_back(std::size_t{1} << bit);
      beyond.push_back((std::size_t{1} << bit) * 3 + in.block_bytes);
    }
    for (const auto offset : beyond) {
      EXPECT_EQ(in.block_at(slab_address(offset)), Slab::k_no_block) << offset;
      EXPECT_EQ(in.block_containing(slab_address(offset)), Slab::k_no_block) << offset;
    }
  });
}

TEST(slabs, know_which_blocks_are_live) {
  each_slab([](Slab& in) {
    EXPECT_EQ(in.count_live(), 0U);
    for (std::uint32_t block = 0; block < in.blocks; block += 3) {
      EXPECT_FALSE(in.mark_freed(block));
      in.mark_live(block);
    }
    EXPECT_EQ(in.count_live(), (in.blocks + 2) / 3);
    for (std::uint32_t block = 0; block < in.blocks; ++block) {
      ASSERT_EQ(in.is_live(block), block % 3 == 0);
    }
    in.free_bitmap()[0] = ~std::uint64_t{0};  // the marks share no bits with these
    in.waiting_bitmap()[0] = ~std::uint64_t{0};
    EXPECT_EQ(in.count_live(), (in.blocks + 2) / 3);
    EXPECT_TRUE(in.mark_freed(0));
    EXPECT_FALSE(in.mark_freed(0));
    in.clear_live_marks();
    EXPECT_EQ(in.count_live(), 0U);
  });
}

// The cache lines of a record that change when a block is marked live.
std::vector<std::uintptr_t> lines_changed_by_mark(Slab& in, std::uint32_t block) {
  const auto record =
      std::span{reinterpret_cast<const std::byte*>(&in), Slab::bytes_for(in.shape())};
  const std::vector<std::byte> before(record.begin(), record.end());
  in.mark_live(block);
  std::vector<std::uintptr_t> lines;
  for (std::size_t at = 0; at < record.size(); ++at) {
    if (record[at] != before[at]) {
      lines.push_back(reinterpret_cast<std::uintptr_t>(&record[at]) / Slab::k_line);
    }
  }
  return lines;
}

// The first blocks that each of two threads obtains: 8 up to 4 KiB, 4 below 64 KiB, then 1 or 2.
TEST(slabs, threads_with_their_first_blocks_mark_different_lines) {
  for (unsigned each = 0; each < k_slab_classes.count(); ++each) {
    const auto nbytes = k_slab_classes.bytes_of(each);
    auto* made = allocate_slab_record(SlabShape::of_first(nbytes));
    ASSERT_NE(made, nullptr);
    made->clear_live_marks();
    const std::uint32_t together = nbytes <= 4096 ? 8 : nbytes < (64U << 10) ? 4 : 1;
    const auto one = lines_changed_by_mark(*made, together - 1);
    const auto next = lines_changed_by_mark(*made, together);
    ASSERT_EQ(one.size(), 1U) << nbytes;
    ASSERT_EQ(next.size(), 1U) << nbytes;
    EXPECT_NE(one, next) << nbytes;
    EXPECT_NE(one.front(), reinterpret_cast<std::uintptr_t>(&made->block_bytes) / Slab::k_line)
        << "which all threads read";
    made->clear_live_marks();
    deallocate_slab_record(*made);
  }
}

// Marks of a byte or a bit: concurrent changes to neighbouring marks are preserved, and of two
// concurrent frees of one block one is refused.
TEST(slabs, let_one_of_two_threads_free_a_block) {
  for (const auto& shape : {SlabShape::of_first(4096), SlabShape::of_later(4096)}) {
    auto* shared = allocate_slab_record(shape);
    ASSERT_NE(shared, nullptr);
    shared->clear_live_marks();
    constexpr int k_rounds = 2000;
    constexpr std::uint32_t k_contested = 0;
    std::atomic<int> ready{0};
    std::atomic<int> freed{0};
    const auto work = [&](std::uint32_t own, bool marks) {
      for (int round = 0; round < k_rounds; ++round) {
        shared->mark_live(own);
        if (marks) {
          shared->mark_live(k_contested);
        }
        ready.fetch_add(1);
        while (ready.load() < 2 * round + 2) {
          std::this_thread::yield();
        }
        freed.fetch_add(shared->mark_freed(k_contested) ? 1 : 0);
        EXPECT_TRUE(shared->mark_freed(own));
      }
    };
    std::thread other([&] { work(1, false); });
    work(2, true);
    other.join();
    EXPECT_EQ(freed.load(), k_rounds);
    deallocate_slab_record(*shared);
  }
}

}  // namespace
}  // namespace isthmus
