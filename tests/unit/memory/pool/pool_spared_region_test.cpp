// SPDX-License-Identifier: Apache-2.0
// Where memory cannot move, a large unused region is released rather than divided for a small
// block.
#include <gtest/gtest.h>

#include <vector>

#include "backend/drivers.hpp"
#include "backend/queue.hpp"
#include "memory/pool/pool.hpp"
#include "support/sizes.hpp"

namespace isthmus {
namespace {

using support::k_mib;

class spared_region_test : public testing::Test {
 protected:
  void SetUp() override {
    auto found = find_device("host");
    ASSERT_TRUE(found);
    auto standard = Platform::default_queue(**found);
    ASSERT_TRUE(standard);
    queue_ = Ref<Queue>{*standard};
  }
  [[nodiscard]] Ref<Pool> make(std::size_t initial_bytes = 0, std::size_t growth_bytes = 0,
                               std::size_t limit_bytes = SIZE_MAX) {
    Pool::Options how;
    how.remaps = false;
    how.initial_bytes = initial_bytes;
    how.growth_bytes = growth_bytes;
    how.limit_bytes = limit_bytes;
    auto made = Pool::create(queue_->context(), queue_->device(), ISTHMUS_KIND_HOST, how);
    EXPECT_TRUE(made);
    return *std::move(made);
  }
  [[nodiscard]] void* take(Pool& from, std::size_t nbytes) {
    auto got = from.allocate(nbytes, 0, *queue_);
    EXPECT_TRUE(got) << got.failure().message();
    return got ? *got : nullptr;
  }
  void give(Pool& to, void* pointer) { EXPECT_TRUE(to.deallocate(pointer, 0, queue_.get())); }

  Ref<Queue> queue_;
};

TEST_F(spared_region_test, is_released_for_a_small_request) {
  const auto from = make();
  give(*from, take(*from, 512 * k_mib));
  auto* const little = take(*from, 40 * k_mib);
  EXPECT_LT(from->usage().held_bytes, 512 * k_mib);
  give(*from, little);
}

TEST_F(spared_region_test, serves_more_than_half_of_itself) {
  const auto from = make();
  auto* const whole = take(*from, 512 * k_mib);
  give(*from, whole);
  auto* const most = take(*from, 300 * k_mib);
  EXPECT_EQ(most, whole);
  EXPECT_EQ(from->usage().maps, 1U);
  give(*from, most);
}

// Each of these requests would release the region of the other one.
TEST_F(spared_region_test, asking_in_turn_for_much_and_for_little_seldom_calls_the_driver) {
  const auto from = make();
  constexpr int k_turns = 300;
  for (int turn = 0; turn < k_turns; ++turn) {
    give(*from, take(*from, 512 * k_mib));
    give(*from, take(*from, 100 * k_mib));
  }
  EXPECT_LT(from->usage().maps + from->usage().unmaps, std::uint64_t{k_turns});
}

TEST_F(spared_region_test, what_lives_in_a_region_keeps_it) {
  const auto from = make();
  auto* const whole = take(*from, 512 * k_mib);
  give(*from, whole);
  from->trim(0);
  std::vector<void*> all;
  for (int each = 0; each < 100; ++each) {
    all.push_back(take(*from, 10 * k_mib));
  }
  EXPECT_LE(from->usage().held_bytes, 1200 * k_mib);
  for (auto* each : all) {
    give(*from, each);
  }
  EXPECT_GE(from->trim(0), 1000 * k_mib);
  EXPECT_EQ(from->usage().held_bytes, 0U);
}

TEST_F(spared_region_test, what_grows_serves_at_once) {
  for (const std::size_t alignment : {std::size_t{0}, 32 * k_mib}) {
    const auto from = make(0, 512 * k_mib);
    auto got = from->allocate(k_mib, alignment, *queue_);
    ASSERT_TRUE(got) << got.failure().message();
    EXPECT_LE(from->usage().maps, 2U) << alignment;
    give(*from, *got);
  }
}

TEST_F(spared_region_test, the_initial_region_stays) {
  const auto from = make(512 * k_mib, 0);
  auto* const little = take(*from, 40 * k_mib);
  EXPECT_EQ(from->usage().maps, 1U);
  EXPECT_EQ(from->usage().held_bytes, 512 * k_mib);
  give(*from, little);
}

// A region that work still uses cannot be released, and is divided.
TEST_F(spared_region_test, in_use_by_work_it_is_cut_for_its_own_queue) {
  const auto from = make(0, 0, 512 * k_mib);
  auto* const whole = take(*from, 512 * k_mib);
  const auto gate = make_ref<HostEvent>();
  const std::vector<Ref<Event>> after{gate};
  ASSERT_TRUE(queue_->fence(after));
  give(*from, whole);
  auto* const little = take(*from, 40 * k_mib);
  EXPECT_NE(little, nullptr);
  EXPECT_EQ(from->usage().held_bytes, 512 * k_mib);
  gate->finish({});
  ASSERT_TRUE(queue_->wait(std::nullopt));
  give(*from, little);
}

}  // namespace
}  // namespace isthmus
