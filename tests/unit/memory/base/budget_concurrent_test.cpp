// SPDX-License-Identifier: Apache-2.0
// Budgets: the memory that several pools hold together, which pool releases memory for which other,
// and how failures are reported.

#include "memory/base/budget.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "memory/pool/pool.hpp"
#include "support/sizes.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace isthmus::budget_test {
namespace {

using sim_test::expect_failure;
using sim_test::expect_value;
using sim_test::rig;

using support::k_mib;

// A pool whose regions neither move nor are allocated in advance, so that all counts are
// predictable.
Ref<Pool> member_of(const Ref<Budget>& shared, rig& on, UsmKind kind = ISTHMUS_KIND_DEVICE,
                    std::size_t initial_bytes = 0) {
  return expect_value(Pool::create(
      *on.test_context, *on.test_device, kind,
      {.growth_bytes = k_mib, .initial_bytes = initial_bytes, .remaps = false, .shared = shared}));
}

Result<void*> take(Pool& from, Queue& on, std::size_t mib) {
  return from.allocate(mib * k_mib, 0, on);
}
void give(Pool& to, Queue& on, void* pointer, std::size_t mib) {
  EXPECT_TRUE(to.deallocate(pointer, mib * k_mib, &on));
}
// Allocates and frees, so that the pool caches the memory.
void warm(Pool& of, Queue& on, std::size_t mib) {
  give(of, on, expect_value(take(of, on, mib)), mib);
}

TEST(budget, counts_what_is_in_use_and_what_is_free) {
  rig sim;
  const auto shared = make_ref<Budget>(64 * k_mib);
  const auto first = member_of(shared, sim);
  const auto second = member_of(shared, sim, ISTHMUS_KIND_HOST);
  auto* block = expect_value(take(*first, *sim.queue, 3));
  warm(*second, *sim.queue, 2);
  second->trim(SIZE_MAX);  // out of this thread's thread cache
  auto now = shared->state();
  EXPECT_EQ(now.limit_bytes, 64 * k_mib);
  EXPECT_EQ(now.held_bytes, 5 * k_mib);
  EXPECT_EQ(now.free_bytes, 2 * k_mib);
  EXPECT_EQ(now.pools, 2U);
  give(*first, *sim.queue, block, 3);
  first->trim(0);
  second->trim(0);
  now = shared->state();
  EXPECT_EQ(now.held_bytes, 0U);
  EXPECT_EQ(now.peak_held_bytes, 5 * k_mib);
  EXPECT_EQ(now.refusals, 0U);
}

TEST(budget, a_pool_releases_its_own_memory_before_that_of_others) {
  rig sim;
  const auto shared = make_ref<Budget>(8 * k_mib);
  const auto first = member_of(shared, sim);
  const auto second = member_of(shared, sim);
  warm(*first, *sim.queue, 5);
  warm(*second, *sim.queue, 2);
  auto* block = expect_value(take(*first, *sim.queue, 6));
  EXPECT_EQ(first->usage().held_bytes, 6 * k_mib);
  EXPECT_EQ(second->usage().held_bytes, 2 * k_mib);
  EXPECT_EQ(shared->state().released_bytes, 0U);
  give(*first, *sim.queue, block, 6);
}

TEST(budget, other_pools_release_their_free_memory) {
  rig sim;
  const auto shared = make_ref<Budget>(16 * k_mib);
  const auto first = member_of(shared, sim);
  const auto second = member_of(shared, sim, ISTHMUS_KIND_SHARED);
  const auto third = member_of(shared, sim, ISTHMUS_KIND_HOST);
  auto* kept = expect_value(take(*second, *sim.queue, 3));
  warm(*first, *sim.queue, 4);
  warm(*second, *sim.queue, 8);
  auto* block = expect_value(take(*third, *sim.queue, 10));
  const auto now = shared->state();
  EXPECT_LE(now.held_bytes, 16 * k_mib);
  EXPECT_EQ(now.held_bytes, 13 * k_mib);
  EXPECT_EQ(now.released_bytes, 12 * k_mib);
  EXPECT_EQ(second->usage().held_bytes, 3 * k_mib);
  give(*second, *sim.queue, kept, 3);
  give(*third, *sim.queue, block, 10);
}

TEST(budget, does_not_request_more_than_is_missing) {
  rig sim;
  const auto shared = make_ref<Budget>(16 * k_mib);
  const auto first = member_of(shared, sim);
  const auto second = member_of(shared, sim);
  std::vector<void*> blocks;
  for (int each = 0; each < 12; ++each) {
    blocks.push_back(expect_value(take(*first, *sim.queue, 1)));
  }
  for (auto* each : blocks) {
    give(*first, *sim.queue, each, 1);
  }
  auto* block = expect_value(take(*second, *sim.queue, 6));
  EXPECT_EQ(first->usage().held_bytes, 6 * k_mib);
  give(*second, *sim.queue, block, 6);
}

TEST(budget, reports_what_each_pool_holds) {
  rig sim;
  const auto shared = make_ref<Budget>(8 * k_mib);
  const auto first = member_of(shared, sim);
  const auto second = member_of(shared, sim, ISTHMUS_KIND_HOST);
  auto* one = expect_value(take(*first, *sim.queue, 5));
  auto* other = expect_value(take(*second, *sim.queue, 2));
  auto refused = take(*second, *sim.queue, 4);
  const std::string where = sim.test_device->properties().filter;
  expect_failure(refused, ISTHMUS_ERROR_OUT_OF_MEMORY,
                 "a pool of host memory on " + where + " would need 4 MiB");
  expect_failure(refused, ISTHMUS_ERROR_OUT_OF_MEMORY,
                 "of a budget of 8 MiB (8388608 bytes) of which 7 MiB (7340032 bytes) are held: "
                 "5 MiB (5242880 bytes) by a pool of device memory on " +
                     where + " (0 bytes of it free), 2 MiB (2097152 bytes) by a pool of host");
  EXPECT_EQ(shared->state().held_bytes, 7 * k_mib);
  give(*first, *sim.queue, one, 5);
  give(*second, *sim.queue, other, 2);
}

TEST(budget, is_held_to_by_a_pools_first_bytes_too) {
  rig sim;
  const auto shared = make_ref<Budget>(8 * k_mib);
  const auto first = member_of(shared, sim, ISTHMUS_KIND_DEVICE, 6 * k_mib);
  EXPECT_EQ(shared->state().held_bytes, 6 * k_mib);
  const auto second = member_of(shared, sim, ISTHMUS_KIND_DEVICE, 4 * k_mib);
  EXPECT_EQ(first->usage().held_bytes, 0U);
  auto* block = expect_value(take(*second, *sim.queue, 3));
  const auto third = Pool::create(*sim.test_context, *sim.test_device, ISTHMUS_KIND_DEVICE,
                                  {.initial_bytes = 6 * k_mib, .shared = shared});
  expect_failure(third, ISTHMUS_ERROR_OUT_OF_MEMORY, "budget");
  EXPECT_EQ(shared->state().pools, 2U);
  give(*second, *sim.queue, block, 3);
}

TEST(budget, a_pool_at_its_own_limit_shrinks_no_other_pool) {
  rig sim;
  const auto shared = make_ref<Budget>(64 * k_mib);
  const auto first = member_of(shared, sim);
  const auto limited =
      expect_value(Pool::create(*sim.test_context, *sim.test_device, ISTHMUS_KIND_DEVICE,
                                {.limit_bytes = 2 * k_mib, .remaps = false, .shared = shared}));
  warm(*first, *sim.queue, 4);
  expect_failure(take(*limited, *sim.queue, 3), ISTHMUS_ERROR_OUT_OF_MEMORY, "at most 2 MiB");
  EXPECT_EQ(first->usage().held_bytes, 4 * k_mib);
}

TEST(budget, moving_memory_is_counted_once) {
  rig sim;
  const auto shared = make_ref<Budget>(48 * k_mib);
  const auto only = expect_value(
      Pool::create(*sim.test_context, *sim.test_device, ISTHMUS_KIND_DEVICE, {.shared = shared}));
  std::vector<void*> blocks;
  for (int each = 0; each < 8; ++each) {
    blocks.push_back(expect_value(take(*only, *sim.queue, 4)));
  }
  for (int each = 0; each < 8; each += 2) {
    give(*only, *sim.queue, blocks[static_cast<std::size_t>(each)], 4);
  }
  auto* large = expect_value(take(*only, *sim.queue, 16));
  EXPECT_EQ(shared->state().held_bytes, only->usage().held_bytes);
  give(*only, *sim.queue, large, 16);
  for (int each = 1; each < 8; each += 2) {
    give(*only, *sim.queue, blocks[static_cast<std::size_t>(each)], 4);
  }
  only->trim(0);
  EXPECT_EQ(shared->state().held_bytes, 0U);
}

TEST(budget, counts_destroyed_pools_until_their_memory_is_released) {
  rig sim{"effect=late"};
  const auto shared = make_ref<Budget>(8 * k_mib);
  auto first = member_of(shared, sim);
  const auto second = member_of(shared, sim);
  auto* block = expect_value(take(*first, *sim.queue, 6));
  const auto gate = make_ref<HostEvent>();
  const std::vector<Ref<Event>> after{gate};
  ASSERT_TRUE(sim.queue->fence(after));
  give(*first, *sim.queue, block, 6);
  first = {};
  EXPECT_EQ(shared->state().pools, 1U);
  expect_failure(take(*second, *sim.queue, 6), ISTHMUS_ERROR_OUT_OF_MEMORY,
                 "6 MiB (6291456 bytes) by released pools");
  gate->finish({});
  ASSERT_TRUE(sim.queue->wait(std::nullopt));
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds{20};
  while (shared->state().held_bytes != 0 && std::chrono::steady_clock::now() < patience) {
    std::this_thread::yield();  // a library thread releases it
  }
  EXPECT_EQ(shared->state().held_bytes, 0U);
  give(*second, *sim.queue, expect_value(take(*second, *sim.queue, 6)), 6);
}

TEST(budget, loses_nothing_by_a_call_that_fails) {
  for (int failing = 1; failing < 200; ++failing) {
    rig sim;
    const auto before = sim.calls("any");
    sim.configure("fail=any:" + std::to_string(failing));
    const auto shared = make_ref<Budget>(8 * k_mib);
    int failures = 0;
    for (const bool remaps : {false, true}) {
      auto first = Pool::create(*sim.test_context, *sim.test_device, ISTHMUS_KIND_DEVICE,
                                {.remaps = remaps, .shared = shared});
      auto second = Pool::create(*sim.test_context, *sim.test_device, ISTHMUS_KIND_SHARED,
                                 {.remaps = remaps, .shared = shared});
      ASSERT_TRUE(first && second);
      for (const std::size_t mib : {2U, 5U, 3U, 6U, 1U}) {
        for (auto* each : {&*first, &*second}) {
          auto block = take(**each, *sim.queue, mib);
          failures += block ? 0 : 1;
          EXPECT_LE(shared->state().held_bytes, 8 * k_mib);
          if (block) {
            give(**each, *sim.queue, *block, mib);
          }
        }
      }
      EXPECT_EQ(shared->state().held_bytes,
                (*first)->usage().held_bytes + (*second)->usage().held_bytes);
    }
    EXPECT_LE(failures, 1);
    EXPECT_EQ(shared->state().held_bytes, 0U);
    if (sim.calls("any") - before < static_cast<unsigned>(failing)) {
      return;
    }
  }
  FAIL() << "no run without a failure";
}

// Each pool needs more than half of the budget at times, so that they take memory from each other
// constantly, while pools are created and destroyed.
TEST(budget, pools_that_shrink_one_another_do_not_deadlock) {
  rig sim{"capacity=1GiB"};
  const auto shared = make_ref<Budget>(8 * k_mib);
  std::atomic<int> taken{0};
  std::vector<std::thread> threads;
  for (unsigned number = 0; number < 3; ++number) {
    threads.emplace_back([&, number] {
      auto on = expect_value(Queue::create(*sim.test_context, *sim.test_device));
      std::mt19937 random{number};
      auto own = member_of(shared, sim);
      for (int each = 0; each < 300; ++each) {
        if (number == 2 && each % 3 == 0) {
          own = member_of(shared, sim);
        }
        const std::size_t mib = 1 + random() % 6;
        if (auto block = take(*own, *on, mib)) {
          ++taken;
          give(*own, *on, *block, mib);
        } else {
          EXPECT_EQ(block.failure().code(), ISTHMUS_ERROR_OUT_OF_MEMORY);
        }
        if (each % 5 == 0) {
          own->trim(0);  // its thread caches, which no other thread flushes
        }
        EXPECT_LE(shared->state().held_bytes, 8 * k_mib);
      }
    });
  }
  for (auto& each : threads) {
    each.join();
  }
  EXPECT_GT(taken, 0);
  EXPECT_EQ(shared->state().pools, 0U);
  EXPECT_EQ(shared->state().held_bytes, 0U);
}

}  // namespace
}  // namespace isthmus::budget_test
