// SPDX-License-Identifier: Apache-2.0
// The size that a snapshot reports as the largest request a pool can serve without more memory of
// the driver.
#include <algorithm>
#include <random>
#include <thread>

#include "support/short_memory.hpp"

namespace {

using namespace support;

class largest_request : public on_short_memory {
 protected:
  static std::uint64_t largest(const im::resource& from) {
    return im::snapshot_of(from).largest_free;
  }
  // A pool that may grow, with or without remapping.
  im::resource growing(im::kind kind, bool remap) const {
    return im::resource::pool(queue_.context(), kind, {.growth_bytes = k_mib, .remap = remap},
                              device_);
  }
  // Allocates the reported size, and frees it.
  void expect_served(const im::resource& from, bool moves) const {
    expect_served(from, moves, queue_);
  }
  static void expect_served(const im::resource& from, bool moves, const im::queue& on) {
    const auto nbytes = largest(from);
    if (nbytes == 0) return;
    const auto before = from.usage();
    void* const pointer = from.allocate(nbytes, 0, on);
    EXPECT_EQ(from.usage().held, before.held) << nbytes << " bytes";
    EXPECT_TRUE(moves || from.usage().maps == before.maps) << nbytes << " bytes";
    from.deallocate(pointer, nbytes, 0, on);
  }
  void expect_no_more(const im::resource& from) const {
    const auto nbytes = largest(from) + 1;
    const auto before = from.usage();
    void* const pointer = from.allocate(nbytes, 0, queue_);
    EXPECT_GT(from.usage().maps, before.maps) << nbytes << " bytes";
    from.deallocate(pointer, nbytes, 0, queue_);
  }
};
INSTANTIATE_ON_BACKENDS(largest_request);

// Successive requests take all memory of the pool, until it has none left.
TEST_P(largest_request, takes_all_of_a_pool_piece_by_piece) {
  const im::resource from = make(0ns);
  std::vector<std::pair<void*, std::uint64_t>> blocks;
  for (const std::size_t nbytes : {100U, 3000U, 100'000U}) {
    blocks.emplace_back(from.allocate(nbytes, 0, queue_), nbytes);
  }
  for (auto nbytes = largest(from); nbytes != 0; nbytes = largest(from)) {
    const auto tried = im::counts_of(from, im::oom_stage::grow).tried;
    blocks.emplace_back(from.allocate(nbytes, 0, queue_), nbytes);
    ASSERT_EQ(im::counts_of(from, im::oom_stage::grow).tried, tried) << nbytes << " bytes";
  }
  EXPECT_THROW((void)from.allocate(1, 0, queue_), im::out_of_memory);
  for (const auto& [pointer, nbytes] : blocks) {
    from.deallocate(pointer, nbytes, 0, queue_);
    EXPECT_GE(largest(from), nbytes);
    expect_served(from, true);
  }
  EXPECT_GE(largest(from), 7 * k_mib) << "all but the slabs whose blocks a list keeps";
}

// The only free blocks are in slabs: in the thread cache, in the central list, and in several
// slabs.
TEST_P(largest_request, is_of_a_slab_where_no_more_is_free) {
  for (const std::size_t nbytes : {100U, 5000U, 100'000U, 256U << 10}) {
    for (const int count : {1, 3, 200}) {
      const im::resource from = growing(im::kind::device, true);
      std::vector<void*> blocks;
      for (int i = 0; i < count; ++i) blocks.push_back(from.allocate(nbytes, 0, queue_));
      std::vector<std::pair<void*, std::uint64_t>> rest;
      for (auto most = largest(from); most > 256 * k_kib; most = largest(from)) {
        rest.emplace_back(from.allocate(most, 0, queue_), most);
      }
      for (int i = 0; i < count; ++i) {
        if (i % 2 != 0) from.deallocate(blocks[static_cast<std::size_t>(i)], nbytes, 0, queue_);
      }
      EXPECT_TRUE(count == 1 || largest(from) >= nbytes);
      expect_served(from, true);
      for (int i = 0; i < count; i += 2) {
        from.deallocate(blocks[static_cast<std::size_t>(i)], nbytes, 0, queue_);
      }
      EXPECT_GE(largest(from), nbytes);
      expect_served(from, true);
      for (const auto& [pointer, most] : rest) from.deallocate(pointer, most, 0, queue_);
    }
  }
}

TEST_P(largest_request, holds_in_random_states) {
  for (const im::kind kind : kinds()) {
    for (const bool remap : {true, false}) {
      for (unsigned seed = 1; seed <= 6; ++seed) {
        SCOPED_TRACE(std::string(name(kind)) + ", seed " + std::to_string(seed) +
                     (remap ? ", moving" : ""));
        const im::resource from = growing(kind, remap);
        std::mt19937 random(seed);
        const std::size_t largest_bits = seed % 2 == 0 ? 20 : 17;
        std::vector<std::pair<void*, std::size_t>> live;
        for (int step = 0; step < 400; ++step) {
          if (live.size() > 30 || (!live.empty() && random() % 5 < 2)) {
            std::swap(live[random() % live.size()], live.back());
            from.deallocate(live.back().first, live.back().second, 0, queue_);
            live.pop_back();
          } else {
            const auto nbytes = 1 + random() % (std::size_t{1} << (random() % largest_bits + 1));
            live.emplace_back(from.allocate(nbytes, 0, queue_), nbytes);
          }
          if (step % 5 == 0) expect_served(from, remap);
        }
        expect_no_more(from);
        for (const auto& [pointer, nbytes] : live) from.deallocate(pointer, nbytes, 0, queue_);
        expect_served(from, remap);
        expect_no_more(from);
      }
    }
  }
}

// The thread caches blocks and page runs for each queue; blocks of one slab may be cached for
// several queues.
TEST_P(largest_request, counts_what_is_kept_for_other_queues) {
  std::vector<im::queue> queues;
  for (int i = 0; i < 12; ++i) queues.emplace_back(device_);
  for (unsigned seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const im::resource from = growing(im::kind::device, seed % 2 == 0);
    std::mt19937 random(seed);
    struct taken {
      void* pointer;
      std::size_t nbytes;
    };
    std::vector<taken> live;
    const auto free_one = [&](const im::queue& on) {
      std::swap(live[random() % live.size()], live.back());
      from.deallocate(live.back().pointer, live.back().nbytes, 0, on);
      live.pop_back();
    };
    for (int round = 0; round < 8; ++round) {
      for (int step = 0; step < 60; ++step) {
        const auto nbytes = 1 + random() % (std::size_t{1} << (random() % 20 + 1));
        const auto& on = queues[random() % queues.size()];
        live.push_back({from.allocate(nbytes, 0, on), nbytes});
      }
      while (live.size() > 3) free_one(queues[random() % queues.size()]);
      while (!live.empty()) {
        const auto& last = queues[random() % queues.size()];
        free_one(last);
        from.deallocate(from.allocate(1, 0, last), 1, 0, last);
        expect_served(from, seed % 2 == 0, last);
      }
      EXPECT_GT(largest(from), 0U);
    }
  }
}

// Free pieces that are not adjacent serve one request if memory can be remapped, but not beyond a
// soft limit, where they are returned to the driver first.
TEST_P(largest_request, is_of_pieces_that_move) {
  if (!contains(GetParam(), "sim")) GTEST_SKIP() << "such small pieces of its memory may stay";
  for (const bool is_beyond : {false, true}) {
    const im::resource from = im::resource::pool(
        queue_.context(), im::kind::device,
        {.growth_bytes = k_mib, .soft_limit_bytes = is_beyond ? 2 * k_mib : 0}, device_);
    std::vector<void*> blocks;
    for (int i = 0; i < 4; ++i) blocks.push_back(from.allocate(k_mib, 0, queue_));
    for (const std::size_t apart : {0U, 2U}) from.deallocate(blocks[apart], k_mib, 0, queue_);
    EXPECT_EQ(largest(from), is_beyond ? k_mib : 2 * k_mib);
    expect_served(from, true);
    for (const std::size_t left : {1U, 3U}) from.deallocate(blocks[left], k_mib, 0, queue_);
  }
}

// Memory that work on another queue still uses does not count; memory used by work on the thread's
// own queue does.
TEST_P(largest_request, is_not_of_what_other_work_uses) {
  const im::queue other(queue_.context(), device_);
  const im::resource from = make(0ns);
  im::host_event gate;
  (void)other.fence({gate});
  from.deallocate(from.allocate(7 * k_mib, 0, other), 7 * k_mib, 0, other);
  for (const bool is_put_back : {false, true}) {
    if (is_put_back) {
      EXPECT_THROW((void)from.allocate(8 * k_mib, 0, queue_), im::out_of_memory);
    }
    from.deallocate(from.allocate(100, 0, queue_), 100, 0, queue_);
    EXPECT_LT(largest(from), 7 * k_mib) << is_put_back;
    expect_served(from, true);
    from.deallocate(from.allocate(100, 0, other), 100, 0, other);
    EXPECT_GE(largest(from), 7 * k_mib) << is_put_back;
  }
  gate.complete();
  EXPECT_TRUE(other.fence().wait_for(30s));
}

// Memory in the cache of another thread does not count for this thread.
TEST_P(largest_request, is_that_of_the_calling_thread) {
  const im::resource from = make(0ns);
  std::thread other([&] {
    void* const pointer = from.allocate(7 * k_mib, 0, queue_);
    from.deallocate(pointer, 7 * k_mib, 0, queue_);
    EXPECT_GE(largest(from), 8 * k_mib);
    std::thread third([&] {
      EXPECT_LT(largest(from), 8 * k_mib);
      expect_served(from, false);
    });
    third.join();
  });
  other.join();
  EXPECT_GE(largest(from), 8 * k_mib) << "it has ended";
}

}  // namespace
