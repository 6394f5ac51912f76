// SPDX-License-Identifier: Apache-2.0
// When the driver refuses a request, all pools of that memory release what they have free.

#include "memory/base/other_pools.hpp"
#include "memory/records/recorded_upstream.hpp"

#include <gtest/gtest.h>

#include "buffer/buffer.hpp"
#include "memory/base/provider.hpp"
#include "memory/pool/default_pools.hpp"
#include "memory/pool/pool.hpp"
#include "memory/records/bare_pointers.hpp"
#include "support/sizes.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace isthmus::other_pools_test {
namespace {

using sim_test::expect_failure;
using sim_test::expect_value;
using sim_test::rig;
using support::k_mib;

constexpr std::size_t k_blocks = 8;

class other_pools : public testing::Test {
 protected:
  other_pools() : sim_{"capacity=8MiB"} {}

  Ref<Pool> make(const Pool::Options& how = {.growth_bytes = k_mib}) {
    return expect_value(
        Pool::create(*sim_.test_context, *sim_.test_device, ISTHMUS_KIND_DEVICE, how));
  }
  // The pool holds all memory of the device, and all of it is free.
  void fill(MemoryResource& with) {
    std::vector<void*> blocks;
    for (std::size_t each = 0; each < k_blocks; ++each) {
      blocks.push_back(expect_value(with.allocate(k_mib, 0, *sim_.queue)));
    }
    for (auto* each : blocks) {
      EXPECT_TRUE(with.deallocate(each, k_mib, sim_.queue.get()));
    }
    EXPECT_EQ(with.usage().held_bytes, k_blocks * k_mib);
  }

  rig sim_;
};

TEST_F(other_pools, serve_a_buffer_without_a_pool) {
  const auto full = make();
  fill(*full);
  const auto provider =
      make_ref<isthmus::Provider>(*sim_.test_context, *sim_.test_device, ISTHMUS_KIND_DEVICE);
  const auto made =
      expect_value(Buffer::create(*sim_.queue, {k_mib, ISTHMUS_KIND_DEVICE, 0}, provider.get()));
  EXPECT_LT(full->usage().held_bytes, k_blocks * k_mib);
  EXPECT_GE(full->usage().held_bytes, (k_blocks - 2) * k_mib) << "no more than was missing";
}

TEST_F(other_pools, serve_a_bare_request_to_the_driver) {
  const auto full = make();
  fill(*full);
  const auto provider =
      make_ref<isthmus::Provider>(*sim_.test_context, *sim_.test_device, ISTHMUS_KIND_DEVICE);
  auto* const block = expect_value(allocate_raw(*provider, 8 * k_mib, 0, *sim_.queue));
  EXPECT_EQ(full->usage().held_bytes, 0U);
  EXPECT_TRUE(deallocate_raw(*provider, block, 8 * k_mib, sim_.queue.get()));
}

TEST_F(other_pools, serve_another_pool) {
  const auto full = make();
  fill(*full);
  const auto other = make();
  auto* const block = expect_value(other->allocate(2 * k_mib, 0, *sim_.queue));
  EXPECT_LT(full->usage().held_bytes, k_blocks * k_mib);
  EXPECT_EQ(other->oom_stages().counts_of(OomStage::budget).served, 1U);
  EXPECT_TRUE(other->deallocate(block, 0, sim_.queue.get()));
}

TEST_F(other_pools, serve_what_a_pool_begins_with) {
  const auto full = make();
  fill(*full);
  const auto other = make({.growth_bytes = k_mib, .initial_bytes = 4 * k_mib});
  EXPECT_EQ(other->usage().held_bytes, 4 * k_mib);
}

TEST_F(other_pools, over_other_resources_serve_too) {
  const auto below =
      make_ref<isthmus::Provider>(*sim_.test_context, *sim_.test_device, ISTHMUS_KIND_DEVICE);
  const auto full = make(
      {.growth_bytes = k_mib, .upstream = sim_test::expect_value(RecordedUpstream::create(below))});
  fill(*full);
  const auto made = Buffer::create(*sim_.queue, {4 * k_mib, ISTHMUS_KIND_DEVICE, 0}, below.get());
  EXPECT_TRUE(made) << made.failure().message();
}

TEST_F(other_pools, of_the_default_serve_one_that_is_named) {
  auto full = expect_value(DefaultPools::only().find(
      *sim_.test_context, *sim_.test_device, ISTHMUS_KIND_DEVICE, DefaultPools::Use::arrays));
  auto* const block = expect_value(full->allocate(7 * k_mib, 0, *sim_.queue));
  EXPECT_TRUE(full->deallocate(block, 0, sim_.queue.get()));
  EXPECT_GE(full->usage().held_bytes, 7 * k_mib);
  const auto other = make();
  auto* const taken = expect_value(other->allocate(6 * k_mib, 0, *sim_.queue));
  EXPECT_TRUE(other->deallocate(taken, 0, sim_.queue.get()));
}

TEST_F(other_pools, keep_what_is_live_and_what_a_limit_refused) {
  const auto full = make();
  std::vector<void*> blocks;
  for (std::size_t each = 0; each < k_blocks; ++each) {
    blocks.push_back(expect_value(full->allocate(k_mib, 0, *sim_.queue)));
  }
  const auto provider =
      make_ref<isthmus::Provider>(*sim_.test_context, *sim_.test_device, ISTHMUS_KIND_DEVICE);
  expect_failure(Buffer::create(*sim_.queue, {k_mib, ISTHMUS_KIND_DEVICE, 0}, provider.get()),
                 ISTHMUS_ERROR_OUT_OF_MEMORY);
  for (auto* each : blocks) {
    EXPECT_TRUE(full->deallocate(each, k_mib, sim_.queue.get()));
  }
  const auto limited = make({.growth_bytes = k_mib, .limit_bytes = k_mib});
  expect_failure(limited->allocate(2 * k_mib, 0, *sim_.queue), ISTHMUS_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(full->usage().held_bytes, k_blocks * k_mib);
}

TEST_F(other_pools, of_other_devices_keep_their_memory) {
  const auto full = make();
  fill(*full);
  const rig elsewhere{"capacity=1MiB"};
  const auto there = make_ref<isthmus::Provider>(*elsewhere.test_context, *elsewhere.test_device,
                                                 ISTHMUS_KIND_DEVICE);
  const auto all = expect_value(there->allocate(k_mib, 0, *elsewhere.queue));
  expect_failure(Buffer::create(*elsewhere.queue, {k_mib, ISTHMUS_KIND_DEVICE, 0}, there.get()),
                 ISTHMUS_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(full->usage().held_bytes, k_blocks * k_mib);
  EXPECT_TRUE(there->deallocate(all, k_mib, elsewhere.queue.get()));
}

TEST_F(other_pools, are_left_alone_where_a_request_may_not_wait) {
  const auto full = make();
  fill(*full);
  const auto provider =
      make_ref<isthmus::Provider>(*sim_.test_context, *sim_.test_device, ISTHMUS_KIND_DEVICE);
  no_wait = 1;
  const auto made = Buffer::create(*sim_.queue, {k_mib, ISTHMUS_KIND_DEVICE, 0}, provider.get());
  no_wait = 0;
  expect_failure(made, ISTHMUS_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(full->usage().held_bytes, k_blocks * k_mib);
}

}  // namespace
}  // namespace isthmus::other_pools_test
