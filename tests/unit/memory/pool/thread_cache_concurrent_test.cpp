// SPDX-License-Identifier: Apache-2.0
// Thread caches that another thread flushes: not while the owning thread uses them, but
// then at once.
#include "memory/pool/thread_cache.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <numeric>
#include <thread>

#include "memory/pool/pool.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace isthmus::sim_test {
namespace {

class held_thread_caches : public testing::Test {
 protected:
  // The thread cache of this thread, with a block in it.
  [[nodiscard]] ThreadCache& fill_own() {
    auto* block = expect_value(from_->allocate(1000, 0, *on_));
    EXPECT_TRUE(from_->deallocate(block, 1000, on_.get()));
    return *detail::last_thread_cache;
  }
  [[nodiscard]] static std::uint32_t blocks_in(const ThreadCache& of) {
    return std::accumulate(of.bins.begin(), of.bins.end(), 0U,
                           [](auto sum, const ThreadCache::Bin& each) { return sum + each.count; });
  }
  void revoke(ThreadCache::Revoked which) {
    std::thread{[=, this] { ThreadCache::revoke(*from_, which); }}.join();
  }

  rig sim_{""};
  Ref<Pool> from_ =
      expect_value(Pool::create(*sim_.test_context, *sim_.test_device, ISTHMUS_KIND_DEVICE, {}));
  Ref<Queue> on_ = expect_value(Queue::create(*sim_.test_context, *sim_.test_device));
};

TEST_F(held_thread_caches, keep_what_they_have) {
  auto& mine = fill_own();
  const auto blocks = blocks_in(mine);
  {
    const ThreadCache::Hold held{mine};
    ASSERT_TRUE(held);
    revoke(ThreadCache::Revoked::all);
    EXPECT_EQ(blocks_in(mine), blocks);
  }
  revoke(ThreadCache::Revoked::all);
  EXPECT_EQ(blocks_in(mine), 0U);
}

TEST_F(held_thread_caches, are_idle_when_unused_between_two_scans) {
  auto& mine = fill_own();
  revoke(ThreadCache::Revoked::idle);
  { const ThreadCache::Hold held{mine}; }
  revoke(ThreadCache::Revoked::idle);
  EXPECT_NE(blocks_in(mine), 0U);
  {
    const ThreadCache::Hold held{mine};
    revoke(ThreadCache::Revoked::idle);
    revoke(ThreadCache::Revoked::idle);
    EXPECT_NE(blocks_in(mine), 0U);
  }
  revoke(ThreadCache::Revoked::idle);
  revoke(ThreadCache::Revoked::idle);
  EXPECT_EQ(blocks_in(mine), 0U);
}

// While the flush waits for one thread cache, all that are to be flushed refuse their threads.
TEST_F(held_thread_caches, are_refused_to_their_threads_while_they_are_emptied) {
  constexpr int k_most_turns = 10'000;
  auto& mine = fill_own();
  std::latch known{1};
  std::latch refused{1};
  std::atomic<bool> over{false};
  std::thread other{[&] {  // its thread cache is visited before that of the main thread
    auto& its = fill_own();
    const ThreadCache::Hold held{its};
    known.count_down();
    refused.wait();
  }};
  known.wait();
  std::thread revoking{[&] {
    for (int turn = 0; turn < k_most_turns && !over; ++turn) {
      ThreadCache::revoke(*from_, ThreadCache::Revoked::all);
    }
    over = true;
  }};
  bool was_refused = false;
  while (!over && !was_refused) {
    was_refused = !ThreadCache::Hold{mine};
  }
  over = true;
  EXPECT_TRUE(was_refused);
  revoking.join();
  refused.count_down();
  other.join();
}

}  // namespace
}  // namespace isthmus::sim_test
