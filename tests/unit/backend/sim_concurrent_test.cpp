// SPDX-License-Identifier: Apache-2.0
// Objects released while operations are pending, and many threads on one device.

#include <thread>

#include "core/text.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace isthmus {
namespace {

using sim_test::counted;
using sim_test::expect_failure;
using sim_test::expect_value;
using sim_test::rig;

TEST(sim_lifetime, a_dropped_queue_keeps_its_operations) {
  rig sim{"effect=late"};
  unsigned char from = 1;
  unsigned char to = 0;
  auto own = expect_value(Queue::create(*sim.test_context, *sim.test_device));
  const auto copied = expect_value(own->copy(&to, &from, 1, {}));
  own = nullptr;
  EXPECT_EQ(to, 0);
  EXPECT_TRUE(copied->wait({}));
  EXPECT_EQ(to, 1);
}

TEST(sim_lifetime, operations_end_before_their_device_is_destroyed) {
  unsigned char from = 1;
  unsigned char middle = 0;
  unsigned char to = 0;
  Ref<Event> last;
  {
    rig sim{"effect=late"};
    rig other{"effect=late"};
    const auto first = sim.copy(&middle, &from, 1);
    last = other.copy(&to, &middle, 1, {first});
  }
  EXPECT_EQ(to, 1);
  ASSERT_TRUE(last->settled());
  EXPECT_TRUE(last->wait({}));
  EXPECT_TRUE(last->times());
}

TEST(sim_lifetime, a_device_waits_for_the_host) {
  for (const auto* effect : {"effect=early", "effect=late"}) {
    unsigned char from = 1;
    unsigned char to = 0;
    auto gate = make_ref<HostEvent>();
    Ref<Event> copied;
    {
      rig sim{effect};
      const auto own = expect_value(Queue::create(*sim.test_context, *sim.test_device));
      copied = expect_value(own->copy(&to, &from, 1, std::vector<Ref<Event>>{gate}));
    }
    EXPECT_FALSE(copied->settled());
    gate->finish({});
    EXPECT_TRUE(copied->wait({}));
    EXPECT_EQ(to, 1);
  }
}

TEST(sim_lifetime, an_abandoned_gate_unblocks_all_operations) {
  Ref<Event> behind;
  {
    rig sim;
    auto gate = make_ref<HostEvent>();
    behind = expect_value(sim.queue->fence(std::vector<Ref<Event>>{gate}));
    static_cast<Event&>(*gate).release_handle();
    static_cast<void>(gate.detach());
  }
  expect_failure(behind->wait({}), ISTHMUS_ERROR_DEPENDENCY, "dropped");
}

TEST(sim_lifetime, a_device_that_waits_for_another_ones_host_abandons) {
  const auto gate = make_ref<HostEvent>();
  rig sim;
  const auto held = expect_value(sim.queue->fence(std::vector<Ref<Event>>{gate}));
  Ref<Event> waiting;
  {
    rig other{"effect=late"};
    waiting = expect_value(other.queue->fence(std::vector{held}));
  }
  expect_failure(waiting->wait({}), ISTHMUS_ERROR_ABANDONED, "was destroyed while");
  gate->finish({});
  EXPECT_TRUE(held->wait({}));
}

TEST(sim_concurrent, threads_share_a_device) {
  for (const auto* effect : {"effect=early", "effect=late", "effect=random"}) {
    rig sim{effect};
    std::vector<std::thread> threads;
    for (unsigned number = 0; number < 4; ++number) {
      threads.emplace_back([&sim, number] {
        const auto own = expect_value(Queue::create(*sim.test_context, *sim.test_device));
        for (unsigned turn = 0; turn < 100; ++turn) {
          const auto bytes = counted(257, number * 31 + turn);
          std::vector<unsigned char> back(257);
          auto* const memory = sim.make(257);
          const auto there = expect_value(own->copy(memory, bytes.data(), 257, {}));
          auto& on = turn % 2 == 0 ? *sim.queue : *own;
          const auto here = expect_value(on.copy(back.data(), memory, 257, std::vector{there}));
          if (turn % 3 == 0) {
            while (here->pending()) {
            }
          }
          EXPECT_TRUE(here->wait({}));
          EXPECT_EQ(back, bytes);
          sim.free(memory, 257);
        }
      });
    }
    for (auto& thread : threads) {
      thread.join();
    }
  }
}

TEST(sim_concurrent, gates_opened_elsewhere) {
  rig sim{"effect=random"};
  for (unsigned turn = 0; turn < 200; ++turn) {
    const auto gate = make_ref<HostEvent>();
    unsigned char from = 0;
    unsigned char to = 0;
    const auto copied = sim.copy(&to, &from, 1, {gate});
    std::thread opener{[&] {
      from = 7;
      gate->finish({});
    }};
    std::thread waiter{[&] { EXPECT_TRUE(copied->wait({})); }};
    EXPECT_TRUE(copied->wait({}));
    EXPECT_EQ(to, 7);
    opener.join();
    waiter.join();
  }
}

TEST(sim_concurrent, devices_wait_for_one_another) {
  rig one{"effect=late"};
  rig two{"effect=random"};
  for (unsigned turn = 0; turn < 100; ++turn) {
    unsigned char value[4] = {1, 0, 0, 0};
    const auto first = one.copy(&value[1], &value[0], 1);
    const auto second = two.copy(&value[2], &value[1], 1, {first});
    const auto third = one.copy(&value[3], &value[2], 1, {second});
    std::thread other{[&] { EXPECT_TRUE(second->wait({})); }};
    EXPECT_TRUE(third->wait({}));
    EXPECT_EQ(value[3], 1);
    other.join();
  }
}

TEST(sim_concurrent, a_device_lost_under_work) {
  for (unsigned turn = 0; turn < 20; ++turn) {
    rig sim{formatted("effect=random,seed={},lost={}", turn, 10 + turn * 5)};
    std::vector<std::thread> threads;
    for (int number = 0; number < 3; ++number) {
      threads.emplace_back([&sim] {
        unsigned char from = 1;
        unsigned char to = 0;
        for (int round = 0; round < 50; ++round) {
          auto copied = sim.queue->copy(&to, &from, 1, {});
          auto ended = copied ? (*copied)->wait({}) : Result<void>{copied.take_error()};
          if (!ended) {
            expect_failure(ended, ISTHMUS_ERROR_DEVICE_LOST);
            return;
          }
        }
      });
    }
    for (auto& thread : threads) {
      thread.join();
    }
    EXPECT_TRUE(sim.queue->wait({}));
  }
}

}  // namespace
}  // namespace isthmus
