// SPDX-License-Identifier: Apache-2.0
// Free memory that was not needed for some time is released; memory that was needed is not.

#include "memory/pool/decay.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "backend/library_threads.hpp"
#include "memory/pool/pool.hpp"
#include "support/sizes.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace isthmus::decay_test {
namespace {

using namespace std::chrono_literals;
using sim_test::expect_value;
using sim_test::rig;

using support::k_mib;

Ref<Pool> pool_with(rig& on, std::chrono::nanoseconds decay, bool remaps = false) {
  return expect_value(Pool::create(*on.test_context, *on.test_device, ISTHMUS_KIND_DEVICE,
                                   {.growth_bytes = k_mib, .remaps = remaps, .decay = decay}));
}

std::vector<void*> take(Pool& from, Queue& on, std::size_t count) {
  std::vector<void*> blocks;
  for (std::size_t each = 0; each < count; ++each) {
    blocks.push_back(expect_value(from.allocate(k_mib, 0, on)));
  }
  return blocks;
}
void give(Pool& to, Queue& on, const std::vector<void*>& blocks) {
  for (auto* each : blocks) {
    EXPECT_TRUE(to.deallocate(each, k_mib, &on));
  }
}

TEST(decay_window, turns_once_its_time_has_passed) {
  const auto before = os::Clock::now();
  DecayWindow window{10s};
  const auto after = os::Clock::now();
  EXPECT_TRUE(window.is_enabled());
  EXPECT_GE(window.end(), before + 10s);
  EXPECT_LE(window.end(), after + 10s);
  EXPECT_FALSE(window.advance(window.end() - 1ns));
  const auto now = window.end() + 3s;
  EXPECT_TRUE(window.advance(now));
  EXPECT_EQ(window.end(), now + 10s);
  EXPECT_FALSE(window.advance(now));
}

TEST(decay_window, may_be_for_ever_or_none) {
  DecayWindow none{0ns};
  EXPECT_FALSE(none.is_enabled());
  EXPECT_FALSE(none.advance(os::Clock::time_point::max()));
  DecayWindow longest{os::Clock::duration::max()};
  EXPECT_TRUE(longest.is_enabled());
  EXPECT_EQ(longest.end(), os::Clock::time_point::max());
  EXPECT_FALSE(longest.advance(os::Clock::now() + 1000h));
}

// Windows so long that no library thread sees their end.
TEST(decay, releases_what_was_free_for_a_whole_window) {
  rig sim;
  const auto from = pool_with(sim, 1h);
  const auto now = DecayWindow::Clock::now();
  give(*from, *sim.queue, take(*from, *sim.queue, 4));
  EXPECT_EQ(from->decay(now + 2h), 0U) << "it was in use in this window";
  EXPECT_EQ(from->usage().held_bytes, 4 * k_mib);
  EXPECT_EQ(from->decay(now + 4h), 4 * k_mib);
  EXPECT_EQ(from->usage().held_bytes, 0U);
}

TEST(decay, keeps_what_was_needed_for_a_moment) {
  rig sim;
  const auto from = pool_with(sim, 1h);
  const auto now = DecayWindow::Clock::now();
  give(*from, *sim.queue, take(*from, *sim.queue, 4));
  EXPECT_EQ(from->decay(now + 2h), 0U);
  give(*from, *sim.queue, take(*from, *sim.queue, 3));
  EXPECT_EQ(from->decay(now + 4h), k_mib);
  EXPECT_EQ(from->usage().held_bytes, 3 * k_mib);
}

TEST(decay, comes_as_the_pool_grows) {
  rig sim;
  const auto from = pool_with(sim, 1ns, true);
  give(*from, *sim.queue, take(*from, *sim.queue, 4));
  from->trim(SIZE_MAX);
  const auto before = from->usage().held_bytes;
  auto* large = expect_value(from->allocate(64 * k_mib, 0, *sim.queue));
  EXPECT_EQ(from->usage().held_bytes, 64 * k_mib) << "of " << before << " nothing was needed";
  EXPECT_TRUE(from->deallocate(large, 64 * k_mib, sim.queue.get()));
}

TEST(decay, does_nothing_before_its_time_or_where_there_is_none) {
  rig sim;
  for (const auto decay : {0ns, std::chrono::nanoseconds{1h}}) {
    const auto from = pool_with(sim, decay);
    give(*from, *sim.queue, take(*from, *sim.queue, 4));
    for (int each = 0; each < 10; ++each) {
      EXPECT_EQ(from->trim(SIZE_MAX), 0U);
      EXPECT_EQ(from->decay(os::Clock::now()), 0U);
    }
    EXPECT_EQ(from->usage().held_bytes, 4 * k_mib);
  }
}

TEST(decay, leaves_what_pending_work_uses) {
  rig sim{"effect=late"};
  const auto from = pool_with(sim, 1ns);
  const auto blocks = take(*from, *sim.queue, 2);
  const auto gate = make_ref<HostEvent>();
  const std::vector<Ref<Event>> after{gate};
  ASSERT_TRUE(sim.queue->fence(after));
  give(*from, *sim.queue, blocks);
  for (int each = 0; each < 4; ++each) {
    EXPECT_EQ(from->trim(SIZE_MAX), 0U);
  }
  gate->finish({});
  ASSERT_TRUE(sim.queue->wait(std::nullopt));
}

void start_a_library_thread() {
  std::atomic<bool> ran{false};
  run_on_library_thread([&] { ran = true; }, [](const Error& why) { FAIL() << why.message(); });
  while (!ran) {
    std::this_thread::yield();
  }
}

bool comes_to_hold(Pool& of, std::size_t nbytes) {
  const auto patience = os::Clock::now() + 20s;
  while (of.usage().held_bytes != nbytes && os::Clock::now() < patience) {
    std::this_thread::sleep_for(1ms);
  }
  return of.usage().held_bytes == nbytes;
}

TEST(decay, comes_on_an_idle_thread_of_the_library) {
  start_a_library_thread();
  rig sim;
  const auto from = pool_with(sim, 1ms);
  auto blocks = take(*from, *sim.queue, 4);
  auto kept = blocks.back();
  blocks.pop_back();
  give(*from, *sim.queue, blocks);
  from->trim(SIZE_MAX);  // out of this thread's thread cache
  EXPECT_TRUE(comes_to_hold(*from, k_mib));
  EXPECT_TRUE(from->deallocate(kept, k_mib, sim.queue.get()));
  from->trim(SIZE_MAX);
  EXPECT_TRUE(comes_to_hold(*from, 0));
  give(*from, *sim.queue, take(*from, *sim.queue, 2));  // the pool holds memory again
  from->trim(SIZE_MAX);
  EXPECT_TRUE(comes_to_hold(*from, 0));
}

TEST(decay, works_beside_threads_that_allocate_and_pools_that_are_destroyed) {
  start_a_library_thread();
  rig sim;
  std::vector<std::thread> threads;
  for (unsigned number = 0; number < 3; ++number) {
    threads.emplace_back([&, number] {
      auto on = expect_value(Queue::create(*sim.test_context, *sim.test_device));
      auto from = pool_with(sim, std::chrono::microseconds{50}, number == 1);
      for (std::size_t each = 0; each < 300; ++each) {
        if (number == 2 && each % 10 == 0) {
          from = pool_with(sim, std::chrono::microseconds{50});
        }
        give(*from, *on, take(*from, *on, 1 + each % 4));
        if (each % 7 == 0) {
          from->trim(SIZE_MAX);
        }
      }
    });
  }
  for (auto& each : threads) {
    each.join();
  }
}

}  // namespace
}  // namespace isthmus::decay_test
