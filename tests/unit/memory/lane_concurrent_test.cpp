// SPDX-License-Identifier: Apache-2.0
// Thread caches (`lane`) that another thread flushes: not while the owning thread uses them, but
// then at once.
#include "memory/lane.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <numeric>
#include <thread>

#include "memory/pool.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace isthmus::sim_test {
namespace {

class held_lanes : public testing::Test {
 protected:
  // The thread cache of this thread, with a block in it.
  [[nodiscard]] lane& fill_own() {
    auto* block = expect_value(from_->allocate(1000, 0, *on_));
    EXPECT_TRUE(from_->deallocate(block, 1000, on_.get()));
    return *detail::last_lane;
  }
  [[nodiscard]] static std::uint32_t blocks_in(const lane& of) {
    return std::accumulate(of.bins.begin(), of.bins.end(), 0U,
                           [](auto sum, const lane::bin& each) { return sum + each.count; });
  }
  void revoke(lane::revoked which) {
    std::thread{[=, this] { lane::revoke(*from_, which); }}.join();
  }

  rig sim_{""};
  ref<pool> from_ = expect_value(pool::create(*sim_.home, *sim_.where, ISTHMUS_KIND_DEVICE, {}));
  ref<queue> on_ = expect_value(sim_.home->create_queue(*sim_.where));
};

TEST_F(held_lanes, keep_what_they_have) {
  auto& mine = fill_own();
  const auto blocks = blocks_in(mine);
  {
    const lane::hold held{mine};
    ASSERT_TRUE(held);
    revoke(lane::revoked::all);
    EXPECT_EQ(blocks_in(mine), blocks);
  }
  revoke(lane::revoked::all);
  EXPECT_EQ(blocks_in(mine), 0U);
}

TEST_F(held_lanes, are_idle_when_nobody_was_there_between_two_looks) {
  auto& mine = fill_own();
  revoke(lane::revoked::idle);
  { const lane::hold held{mine}; }
  revoke(lane::revoked::idle);
  EXPECT_NE(blocks_in(mine), 0U);
  {
    const lane::hold held{mine};
    revoke(lane::revoked::idle);
    revoke(lane::revoked::idle);
    EXPECT_NE(blocks_in(mine), 0U);
  }
  revoke(lane::revoked::idle);
  revoke(lane::revoked::idle);
  EXPECT_EQ(blocks_in(mine), 0U);
}

// While the flush waits for one thread cache, all that are to be flushed refuse their threads.
TEST_F(held_lanes, are_refused_to_their_threads_while_they_are_emptied) {
  constexpr int k_most_turns = 10'000;
  auto& mine = fill_own();
  std::latch known{1};
  std::latch refused{1};
  std::atomic<bool> over{false};
  std::thread other{[&] {  // its thread cache is visited before that of the main thread
    auto& its = fill_own();
    const lane::hold held{its};
    known.count_down();
    refused.wait();
  }};
  known.wait();
  std::thread revoking{[&] {
    for (int turn = 0; turn < k_most_turns && !over; ++turn) {
      lane::revoke(*from_, lane::revoked::all);
    }
    over = true;
  }};
  bool was_refused = false;
  while (!over && !was_refused) {
    was_refused = !lane::hold{mine};
  }
  over = true;
  EXPECT_TRUE(was_refused);
  revoking.join();
  refused.count_down();
  other.join();
}

}  // namespace
}  // namespace isthmus::sim_test
