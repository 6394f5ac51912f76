// SPDX-License-Identifier: Apache-2.0
// Memory freed while work on it is still pending: usable at once on its own queue, on others only
// when that work has ended. The simulated device delays every effect as long as possible, so that
// memory reused too early shows as wrong bytes.

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "memory/base/live_counts.hpp"
#include "memory/pool/pool.hpp"
#include "support/eventually.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace isthmus::sim_test {
namespace {

FillPattern byte_pattern(unsigned value) {
  FillPattern made;
  made.nbytes = 1;
  made.bytes[0] = static_cast<std::byte>(value);
  return made;
}

void finish(Queue& on) { EXPECT_TRUE(expect_value(on.pending())->wait({})); }

class pool_order : public testing::Test {
 protected:
  [[nodiscard]] Ref<Queue> another_queue() {
    return expect_value(Queue::create(*sim_.test_context, *sim_.test_device));
  }
  [[nodiscard]] Ref<Pool> make(Pool::Options how = {}) {
    return expect_value(
        Pool::create(*sim_.test_context, *sim_.test_device, ISTHMUS_KIND_DEVICE, how));
  }
  // Nothing submitted to the queue afterwards runs before the gate is completed.
  static void hold_up(Queue& on, const Ref<HostEvent>& gate) {
    const std::vector<Ref<Event>> after{gate};
    static_cast<void>(expect_value(on.fence(after)));
  }

  static void take_and_give(Pool& from, Queue& on, std::size_t nbytes) {
    EXPECT_TRUE(from.deallocate(expect_value(from.allocate(nbytes, 0, on)), nbytes, &on));
  }

  rig sim_{"effect=late"};
};

TEST_F(pool_order, is_the_queues_own) {
  const auto from = make();
  const auto first = another_queue();
  const auto second = another_queue();
  for (const std::size_t nbytes :
       {std::size_t{1000}, std::size_t{100} << 10, std::size_t{3} << 20}) {
    const auto gate = make_ref<HostEvent>();
    hold_up(*first, gate);
    auto* block = expect_value(from->allocate(nbytes, 0, *first));
    EXPECT_TRUE(from->deallocate(block, nbytes, first.get()));
    auto* elsewhere = expect_value(from->allocate(nbytes, 0, *second));
    EXPECT_NE(elsewhere, block) << "work on the first queue may still write it";
    EXPECT_EQ(expect_value(from->allocate(nbytes, 0, *first)), block);
    EXPECT_TRUE(from->deallocate(block, nbytes, first.get()));
    EXPECT_TRUE(from->deallocate(elsewhere, nbytes, second.get()));
    gate->finish({});
    finish(*first);
  }
}

TEST_F(pool_order, memory_is_reused_on_other_queues_once_the_work_has_ended) {
  constexpr std::size_t k_nbytes = std::size_t{8} << 20;
  const auto from = make({.growth_bytes = k_nbytes});
  const auto first = another_queue();
  const auto second = another_queue();
  const auto gate = make_ref<HostEvent>();
  hold_up(*first, gate);
  EXPECT_TRUE(
      from->deallocate(expect_value(from->allocate(k_nbytes, 0, *first)), k_nbytes, first.get()));
  ThreadCache::flush_own(*from);
  EXPECT_TRUE(
      from->deallocate(expect_value(from->allocate(k_nbytes, 0, *second)), k_nbytes, second.get()));
  EXPECT_EQ(from->usage().held_bytes, 2 * k_nbytes) << "the first waits";
  gate->finish({});
  finish(*first);
  from->trim(SIZE_MAX);
  std::vector<void*> both;
  for (int each = 0; each < 2; ++each) {
    both.push_back(expect_value(from->allocate(k_nbytes, 0, *second)));
  }
  EXPECT_EQ(from->usage().held_bytes, 2 * k_nbytes);
  for (auto* each : both) {
    EXPECT_TRUE(from->deallocate(each, k_nbytes, second.get()));
  }
}

TEST_F(pool_order, nothing_returns_to_the_driver_while_work_uses_it) {
  const auto from = make();
  const auto on = another_queue();
  const auto gate = make_ref<HostEvent>();
  hold_up(*on, gate);
  EXPECT_TRUE(from->deallocate(expect_value(from->allocate(1000, 0, *on)), 1000, on.get()));
  EXPECT_EQ(from->trim(0), 0U);
  gate->finish({});
  finish(*on);
  from->trim(0);
  EXPECT_EQ(from->usage().held_bytes, 0U);
}

// Expects that all memory of the destroyed pool is released once no work runs.
void expect_that_all_goes(const LiveTotal& before) {
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds{20};
  while (process_live_counts().total(ISTHMUS_KIND_UNKNOWN).bytes != before.bytes &&
         std::chrono::steady_clock::now() < patience) {
    std::this_thread::yield();
  }
  EXPECT_EQ(process_live_counts().total(ISTHMUS_KIND_UNKNOWN).bytes, before.bytes);
}

TEST_F(pool_order, of_several_queues_is_waited_for_when_the_pool_is_destroyed) {
  const auto before =
      support::wait_until_stable([] { return process_live_counts().total(ISTHMUS_KIND_UNKNOWN); });
  const std::vector<Ref<Queue>> busy{another_queue(), another_queue()};
  const auto busiest = another_queue();
  const auto gate = make_ref<HostEvent>();
  const auto last_gate = make_ref<HostEvent>();
  {
    const auto from = make();
    take_and_give(*from, *busiest, 1000);
    ThreadCache::flush_own(*from);
    from->trim(SIZE_MAX);  // no free memory of the pool waits for the busiest queue
    hold_up(*busiest, last_gate);
    std::vector<void*> blocks;
    for (int each = 0; each < 100; ++each) {
      blocks.push_back(expect_value(from->allocate(1000, 0, *busy[0])));
    }
    for (const auto& each : busy) {
      hold_up(*each, gate);
    }
    for (std::size_t each = 0; each < blocks.size(); ++each) {
      EXPECT_TRUE(from->deallocate(blocks[each], 1000, busy[each % 2].get()));
    }
  }
  gate->finish({});
  for (const auto& each : busy) {
    finish(*each);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds{20});
  last_gate->finish({});
  finish(*busiest);
  expect_that_all_goes(before);
}

TEST_F(pool_order, a_queue_finds_its_own_memory_past_slabs_of_other_queues) {
  constexpr std::size_t k_block = std::size_t{256} << 10;
  const auto from = make({.growth_bytes = std::size_t{64} << 20});
  const auto mine = another_queue();
  const auto others = another_queue();
  const auto gate = make_ref<HostEvent>();
  hold_up(*mine, gate);
  hold_up(*others, gate);
  std::vector<void*> blocks;
  for (int each = 0; each < 64; ++each) {
    blocks.push_back(expect_value(from->allocate(k_block, 0, *others)));
  }
  auto* kept = expect_value(from->allocate(1, 0, *others));
  auto* run = expect_value(from->allocate(std::size_t{40} << 20, 0, *mine));
  for (std::size_t each = 0; each < blocks.size(); ++each) {
    if (each % 4 != 0) {  // so that no slab becomes entirely free
      EXPECT_TRUE(from->deallocate(blocks[each], k_block, others.get()));
    }
  }
  EXPECT_TRUE(from->deallocate(run, 1, mine.get()));
  ThreadCache::flush_own(*from);
  const auto held = from->usage().held_bytes;
  std::vector<void*> found;
  for (int each = 0; each < 100; ++each) {
    found.push_back(expect_value(from->allocate(k_block, 0, *mine)));
  }
  EXPECT_EQ(from->usage().held_bytes, held);
  gate->finish({});
  for (auto* each : found) {
    EXPECT_TRUE(from->deallocate(each, k_block, mine.get()));
  }
  for (std::size_t each = 0; each < blocks.size(); each += 4) {
    EXPECT_TRUE(from->deallocate(blocks[each], k_block, others.get()));
  }
  EXPECT_TRUE(from->deallocate(kept, 1, others.get()));
  finish(*mine);
  finish(*others);
}

// One page run was used by two queues, either of which may end first.
TEST_F(pool_order, a_queue_waits_on_the_device_for_all_that_used_its_memory) {
  constexpr std::size_t k_half = std::size_t{4} << 20;
  for (const std::size_t first_to_end : {0U, 1U}) {
    const auto from = make({.growth_bytes = 2 * k_half,
                            .limit_bytes = 2 * k_half,
                            .remaps = false,
                            .max_wait = std::chrono::nanoseconds{0},
                            .device_wait = true});
    const std::vector<Ref<Queue>> busy{another_queue(), another_queue()};
    const std::vector<Ref<HostEvent>> gates{make_ref<HostEvent>(), make_ref<HostEvent>()};
    std::vector<void*> halves;
    for (std::size_t each = 0; each < 2; ++each) {
      hold_up(*busy[each], gates[each]);
      halves.push_back(expect_value(from->allocate(k_half, 0, *busy[each])));
    }
    for (std::size_t each = 0; each < 2; ++each) {
      EXPECT_TRUE(from->deallocate(halves[each], k_half, busy[each].get()));
    }
    const auto on = another_queue();
    auto* whole = expect_value(from->allocate(2 * k_half, 0, *on));
    EXPECT_EQ(from->oom_stages().counts_of(OomStage::device_wait).served, 1U);
    const auto reached = expect_value(on->fence({}));
    gates[first_to_end]->finish({});
    finish(*busy[first_to_end]);
    EXPECT_FALSE(reached->wait(os::deadline_after(50'000'000)));
    gates[1 - first_to_end]->finish({});
    finish(*on);
    EXPECT_TRUE(from->deallocate(whole, 2 * k_half, on.get()));
  }
}

TEST_F(pool_order, memory_that_a_queue_cannot_wait_for_is_left_as_it_was) {
  constexpr std::size_t k_nbytes = std::size_t{8} << 20;
  const auto from = make({.growth_bytes = k_nbytes,
                          .limit_bytes = k_nbytes,
                          .remaps = false,
                          .max_wait = std::chrono::nanoseconds{0},
                          .device_wait = true});
  const auto busy = another_queue();
  const auto closed = another_queue();
  const auto gate = make_ref<HostEvent>();
  hold_up(*busy, gate);
  take_and_give(*from, *busy, k_nbytes);
  closed->close();
  EXPECT_FALSE(from->allocate(k_nbytes, 0, *closed));
  EXPECT_EQ(from->oom_stages().counts_of(OomStage::device_wait).served, 0U);
  gate->finish({});
  finish(*busy);
  from->trim(0);
  EXPECT_EQ(from->usage().held_bytes, 0U);
}

TEST_F(pool_order, thousands_of_queues_are_created_and_destroyed_without_a_wait) {
  const auto first = make();
  const auto second = make();
  for (int each = 0; each < 2200; ++each) {
    const auto on = another_queue();
    take_and_give(*first, *on, 128);
    take_and_give(*second, *on, 128);
  }
  const auto on = another_queue();
  const auto gate = make_ref<HostEvent>();
  hold_up(*on, gate);
  take_and_give(*first, *on, 128);
  take_and_give(*first, *on, 4096);
  gate->finish({});
  finish(*on);
}

// The frees return while the work that they are ordered after is still waiting.
TEST_F(pool_order, frees_on_two_thousand_busy_queues_wait_for_none) {
  const auto from = make();
  const auto gate = make_ref<HostEvent>();
  std::vector<Ref<Queue>> busy;
  for (int each = 0; each < 2000; ++each) {
    busy.push_back(another_queue());
    hold_up(*busy.back(), gate);
    take_and_give(*from, *busy.back(), 128);
    take_and_give(*from, *busy.back(), std::size_t{64} << 10);
    EXPECT_NE(from->fences().find(busy.back().get()), QueueFences::k_no_queue);
  }
  EXPECT_EQ(from->fences().find(busy.front()->serial()).get(), busy.front().get());
  gate->finish({});
  for (const auto& each : busy) {
    finish(*each);
  }
}

struct sent {
  std::size_t offset;
  std::size_t nbytes;
  std::byte value;
};

// Writes a block, copies it out and frees it without waiting. The copies are compared at the end.
void write_copy_and_free(Pool& from, Queue& on, unsigned seed, int rounds) {
  std::mt19937 random{seed};
  std::vector<std::byte> out(std::size_t{24} << 20);
  std::vector<sent> all;
  std::size_t used = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto nbytes = std::size_t{1} << (8 + random() % (random() % 16 == 0 ? 13 : 9));
    if (used + nbytes > out.size()) {
      break;
    }
    auto* block = expect_value(from.allocate(nbytes, 0, on));
    const auto value = static_cast<unsigned>(1 + random() % 255);
    static_cast<void>(expect_value(on.fill(block, byte_pattern(value), nbytes, {})));
    static_cast<void>(expect_value(on.copy(out.data() + used, block, nbytes, {})));
    EXPECT_TRUE(from.deallocate(block, nbytes, &on));
    all.push_back({used, nbytes, static_cast<std::byte>(value)});
    used += nbytes;
    if (random() % 64 == 0) {
      ThreadCache::flush_own(from);
    }
  }
  finish(on);
  for (const auto& each : all) {
    const auto* first = out.data() + each.offset;
    ASSERT_TRUE(
        std::all_of(first, first + each.nbytes, [&](std::byte one) { return one == each.value; }))
        << each.nbytes << " bytes were written by somebody else";
  }
}

TEST_F(pool_order, no_block_changes_hands_under_work) {
  const auto from = make({.growth_bytes = std::size_t{4} << 20});
  std::vector<std::thread> threads;
  for (unsigned each = 0; each < 4; ++each) {
    threads.emplace_back(
        [&, each, on = another_queue()] { write_copy_and_free(*from, *on, each + 1, 1500); });
  }
  for (auto& each : threads) {
    each.join();
  }
  from->trim(0);
}

}  // namespace
}  // namespace isthmus::sim_test
