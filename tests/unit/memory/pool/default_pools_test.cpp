// SPDX-License-Identifier: Apache-2.0
// One pool for each kind of memory of a device in a context, destroyed when it is no longer needed.

#include "memory/pool/default_pools.hpp"
#include "memory/base/driver_serves_thread.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "backend/platform.hpp"
#include "buffer/buffer.hpp"
#include "support/eventually.hpp"
#include "support/sizes.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace isthmus::default_pools_test {
namespace {

using namespace std::chrono_literals;
using sim_test::expect_failure;
using sim_test::expect_value;
using sim_test::rig;
using support::k_mib;
using support::wait_until_stable;
using use = DefaultPools::Use;

Ref<Pool> find(rig& on, UsmKind kind = ISTHMUS_KIND_DEVICE, use by = use::buffers) {
  return expect_value(DefaultPools::only().find(*on.test_context, *on.test_device, kind, by));
}

TEST(default_pools, are_one_for_each_kind_device_and_context) {
  rig one;
  rig two;
  const auto first = find(one);
  EXPECT_EQ(find(one).get(), first.get());
  EXPECT_EQ(find(one, ISTHMUS_KIND_DEVICE, use::arrays).get(), first.get())
      << "no other memory can be shared there either";
  EXPECT_NE(find(one, ISTHMUS_KIND_HOST).get(), first.get());
  EXPECT_NE(find(two).get(), first.get());
  const std::array<Device*, 1> members{one.test_device.get()};
  auto other = expect_value(one.test_device->platform().create_context(members));
  auto there = expect_value(
      DefaultPools::only().find(*other, *one.test_device, ISTHMUS_KIND_DEVICE, use::buffers));
  EXPECT_NE(there.get(), first.get());
}

TEST(default_pools, refuse_what_the_device_lacks) {
  rig sim;
  expect_failure(DefaultPools::only().find(*sim.test_context, *sim.test_device, 7, use::buffers),
                 ISTHMUS_ERROR_INVALID_ARGUMENT, "not a USM kind");
}

TEST(default_pools, serve_buffers_without_a_resource) {
  rig sim;
  const auto from = find(sim);
  const auto calls = sim.calls("allocate");
  for (int each = 0; each < 100; ++each) {
    const auto made = expect_value(Buffer::create(*sim.queue, {1000, ISTHMUS_KIND_DEVICE, 0}));
    ASSERT_NE(made->pointer(), nullptr);
  }
  EXPECT_LE(sim.calls("allocate"), calls + 1);
  EXPECT_GT(from->usage().held_bytes, 0U);
}

TEST(default_pools, are_bypassed_in_a_callback_of_a_resource) {
  rig sim;
  const DriverServesThread meanwhile;
  const auto made = expect_value(Buffer::create(*sim.queue, {1000, ISTHMUS_KIND_DEVICE, 0}));
  EXPECT_EQ(sim.calls("allocate"), 1U);
  EXPECT_EQ(find(sim)->usage().held_bytes, 0U);
}

TEST(default_pools, return_by_age_what_was_not_needed) {
  rig sim;
  auto from = find(sim);
  EXPECT_LE(from->decay_end(), DecayWindow::Clock::now() + DefaultPools::k_decay);
  auto made = expect_value(Buffer::create(*sim.queue, {2 * k_mib, ISTHMUS_KIND_DEVICE, 0}));
  made = {};
  const auto now = DecayWindow::Clock::now();
  static_cast<void>(from->decay(now + 15s));
  EXPECT_GE(from->usage().held_bytes, 2 * k_mib) << "it was in use in this window";
  static_cast<void>(from->decay(now + 30s));
  static_cast<void>(from->decay(now + 45s));
  EXPECT_EQ(from->usage().held_bytes, 0U);
}

TEST(default_pools, call_no_driver_in_a_program_that_repeats_its_steps) {
  rig sim;
  auto from = find(sim);
  const auto step = [&] {
    auto large = expect_value(Buffer::create(*sim.queue, {3 * k_mib, ISTHMUS_KIND_DEVICE, 0}));
    auto small = expect_value(Buffer::create(*sim.queue, {1000, ISTHMUS_KIND_DEVICE, 0}));
  };
  step();
  auto now = DecayWindow::Clock::now();
  static_cast<void>(from->decay(now += 11s));
  step();
  static_cast<void>(from->decay(now += 11s));
  step();
  const auto before = from->usage();
  for (int window = 0; window < 5; ++window) {
    step();
    static_cast<void>(from->decay(now += 11s));
  }
  const auto after = from->usage();
  EXPECT_EQ(after.maps, before.maps);
  EXPECT_EQ(after.unmaps, before.unmaps);
}

LiveTotal live() {
  auto total = process_live_counts().total(ISTHMUS_KIND_UNKNOWN);
  DefaultPools::only().count_blocks(total, ISTHMUS_KIND_UNKNOWN);
  return total;
}

// A library thread may return memory at any time: a program that compares the live memory before
// and after a step must not see a difference.
TEST(default_pools, count_as_live_the_same_while_memory_is_returned) {
  rig sim;
  static_cast<void>(wait_until_stable(&live));
  const auto kept = expect_value(Buffer::create(*sim.queue, {1000, ISTHMUS_KIND_DEVICE, 0}));
  const auto before = live();
  std::atomic<bool> stop{false};
  std::atomic<int> returned{0};
  std::thread returning{[&] {
    while (!stop) {
      returned += DefaultPools::only().trim() != 0 ? 1 : 0;
    }
  }};
  int different = 0;
  while (returned < 200) {
    static_cast<void>(Buffer::create(*sim.queue, {8 * k_mib, ISTHMUS_KIND_DEVICE, 0}));
    for (int look = 0; look < 20; ++look) {
      const auto now = live();
      different += now.count != before.count || now.bytes != before.bytes ? 1 : 0;
    }
  }
  stop = true;
  returning.join();
  EXPECT_EQ(different, 0);
}

// Pools that are removed from the table meanwhile, here from positions before the pool that counts,
// must not hide another pool.
TEST(default_pools, count_as_live_while_unused_ones_are_dropped) {
  static_cast<void>(wait_until_stable(&live));
  for (int round = 0; round < 100; ++round) {
    static_cast<void>(DefaultPools::only().trim());  // from the previous round
    std::array<rig, 4> others;
    std::array<Ref<Pool>, 4> unused;
    std::transform(others.begin(), others.end(), unused.begin(),
                   [](rig& each) { return find(each); });
    rig sim;
    const auto kept = expect_value(Buffer::create(*sim.queue, {1000, ISTHMUS_KIND_DEVICE, 0}));
    const auto before = live();
    std::atomic<bool> looking{false};
    std::atomic<bool> dropped{false};
    std::thread dropping{[&] {
      while (!looking) {
        std::this_thread::yield();
      }
      unused = {};
      DefaultPools::only().drop_unused();
      dropped = true;
    }};
    while (!dropped) {
      const auto now = live();
      looking = true;
      EXPECT_EQ(now.count, before.count);
      EXPECT_EQ(now.bytes, before.bytes);
    }
    dropping.join();
  }
}

TEST(default_pools, are_destroyed_when_empty_and_unreferenced) {
  rig sim;
  static_cast<void>(DefaultPools::only().trim());  // pools that other tests left
  const auto before = DefaultPools::only().count();
  {
    const auto made = expect_value(Buffer::create(*sim.queue, {1000, ISTHMUS_KIND_DEVICE, 0}));
    DefaultPools::only().drop_unused();
    EXPECT_EQ(DefaultPools::only().count(), before + 1);
  }
  DefaultPools::only().drop_unused();
  EXPECT_EQ(DefaultPools::only().count(), before + 1) << "it holds memory";
  find(sim)->trim(0);
  DefaultPools::only().drop_unused();
  EXPECT_EQ(DefaultPools::only().count(), before);
}

// A destroyed device leaves nothing once its pool is empty.
TEST(default_pools, release_their_context) {
  static_cast<void>(DefaultPools::only().trim());
  std::size_t before = 0;
  {
    rig sim;
    const auto kept = find(sim);  // keeps the pool until it has been counted
    before = DefaultPools::only().count();
  }
  EXPECT_GE(before, 1U);
  DefaultPools::only().drop_unused();
  EXPECT_LT(DefaultPools::only().count(), before);
}

}  // namespace
}  // namespace isthmus::default_pools_test
