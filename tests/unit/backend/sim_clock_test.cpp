// SPDX-License-Identifier: Apache-2.0
// The virtual clock: what operations cost, what overlaps, and that runs are reproducible.

#include "unit/backend/sim_fixture.hpp"

namespace isthmus {
namespace {

using sim_test::expect_failure;
using sim_test::expect_value;
using sim_test::rig;

// One byte takes 1 ns over the bus and 0.1 ns within the device.
constexpr const char* k_model = "bandwidth=1GB/s,device_bandwidth=10GB/s,latency=5us";

EventTimes times_of(const Ref<Event>& of) { return expect_value(of->times()); }

class sim_clock : public testing::Test {
 protected:
  ~sim_clock() override {
    sim.free(one, k_size);
    sim.free(two, k_size);
  }

  static constexpr std::size_t k_size = 100'000;
  rig sim{k_model};
  unsigned char* one = sim.make(k_size);
  unsigned char* two = sim.make(k_size);
  std::vector<unsigned char> bytes = std::vector<unsigned char>(k_size);
  std::vector<unsigned char> more = std::vector<unsigned char>(k_size);
};

TEST_F(sim_clock, starts_at_zero_and_advances_by_calls_and_waits) {
  EXPECT_EQ(sim.clock(), 0U);
  const auto copied = sim.copy(one, bytes.data(), k_size);
  EXPECT_EQ(sim.clock(), 1'000U);
  expect_failure(copied->times(), ISTHMUS_PENDING);
  EXPECT_EQ(copied->poll(), ISTHMUS_PENDING);
  EXPECT_EQ(sim.clock(), 3'000U);
  ASSERT_TRUE(copied->wait({}));
  EXPECT_EQ(sim.clock(), 106'000U);
  const auto times = times_of(copied);
  EXPECT_EQ(times.submitted_ns, 1'000U);
  EXPECT_EQ(times.started_ns, 1'000U);
  EXPECT_EQ(times.ended_ns, 106'000U);
}

TEST_F(sim_clock, is_complete_once_its_time_has_come) {
  const auto filled = expect_value(sim.queue->fill(one, {}, 10, {}));
  int looks = 0;
  while (filled->pending()) {
    ++looks;
  }
  // 5,001 ns, beginning at 1,000: the sixth poll, at 7,000, finds it complete.
  EXPECT_EQ(looks, 5);
  EXPECT_EQ(sim.clock(), 7'000U);
}

TEST_F(sim_clock, rates) {
  const auto within = sim.copy(one, two, k_size);
  EXPECT_TRUE(within->wait({}));
  const auto times = times_of(within);
  EXPECT_EQ(times.ended_ns - times.started_ns, 15'000U);
  sim.configure("latency=0,device_bandwidth=1GB/s");
  const auto slower = sim.copy(one, two, k_size);
  EXPECT_TRUE(slower->wait({}));
  EXPECT_EQ(times_of(slower).ended_ns - times_of(slower).started_ns, 100'000U);
  const auto rows = expect_value(sim.queue->copy_2d({one, 100, bytes.data(), 100, 50, 10}, {}));
  EXPECT_TRUE(rows->wait({}));
  EXPECT_EQ(times_of(rows).ended_ns - times_of(rows).started_ns, 500U);
}

TEST_F(sim_clock, a_queue_is_in_order) {
  const auto to = sim.copy(one, bytes.data(), k_size);
  const auto from = sim.copy(more.data(), two, k_size);
  const auto reached = expect_value(sim.queue->fence({}));
  EXPECT_TRUE(reached->wait({}));
  EXPECT_EQ(times_of(from).started_ns, times_of(to).ended_ns);
  EXPECT_EQ(times_of(reached).ended_ns, times_of(from).ended_ns);
}

TEST_F(sim_clock, directions_overlap_on_two_engines) {
  const auto second = expect_value(Queue::create(*sim.test_context, *sim.test_device));
  const auto third = expect_value(Queue::create(*sim.test_context, *sim.test_device));
  const auto to = sim.copy(one, bytes.data(), k_size);
  const auto from = expect_value(second->copy(more.data(), two, k_size, {}));
  const auto also = expect_value(third->copy(one, bytes.data(), k_size, {}));
  EXPECT_TRUE(also->wait({}));
  EXPECT_EQ(times_of(from).started_ns, times_of(from).submitted_ns);
  EXPECT_EQ(times_of(also).started_ns, times_of(to).ended_ns);
}

TEST_F(sim_clock, an_event_that_is_waited_for_comes_first) {
  const auto second = expect_value(Queue::create(*sim.test_context, *sim.test_device));
  const auto to = sim.copy(one, bytes.data(), k_size);
  const auto within = expect_value(second->copy(two, one, 10, std::vector{to}));
  EXPECT_TRUE(within->wait({}));
  EXPECT_EQ(times_of(within).started_ns, times_of(to).ended_ns);
}

TEST(sim_engines, one_engine_serves_both_directions) {
  rig sim{std::string{k_model} + ",engines=1"};
  EXPECT_EQ(sim.test_device->properties().copy_engines, 1U);
  const auto second = expect_value(Queue::create(*sim.test_context, *sim.test_device));
  auto* const memory = sim.make(1000);
  std::vector<unsigned char> bytes(1000);
  const auto to = sim.copy(memory, bytes.data(), 1000);
  const auto from = expect_value(second->copy(bytes.data(), memory, 1000, {}));
  EXPECT_TRUE(from->wait({}));
  EXPECT_EQ(times_of(from).started_ns, times_of(to).ended_ns);
  sim.free(memory, 1000);
}

TEST(sim_engines, the_clock_has_an_end_and_no_overflow) {
  constexpr auto k_gibibyte = std::size_t{1} << 30;
  rig sim{"bandwidth=1B/s,latency=3600s"};
  auto* const memory = sim.make(k_gibibyte);
  for (int round = 0; round < 6; ++round) {
    EXPECT_TRUE(expect_value(sim.queue->prefetch(memory, k_gibibyte, false, {}))->wait({}));
  }
  EXPECT_EQ(sim.clock(), std::uint64_t{1} << 62);
  sim.free(memory, k_gibibyte);
}

// The timestamps that a program with three queues sees.
std::vector<std::uint64_t> walk(const std::string& options) {
  rig sim{options};
  auto* const memory = sim.make(5000);
  std::vector<unsigned char> bytes(5000);
  std::vector<Ref<Queue>> queues{sim.queue,
                                 expect_value(Queue::create(*sim.test_context, *sim.test_device)),
                                 expect_value(Queue::create(*sim.test_context, *sim.test_device))};
  std::vector<Ref<Event>> made;
  std::vector<std::uint64_t> seen;
  for (std::size_t turn = 0; turn < 60; ++turn) {
    auto& on = queues[turn * 7 % 3];
    std::vector<Ref<Event>> after;
    if (turn > 4 && turn % 3 == 0) {
      after.push_back(made[turn - 4]);
    }
    made.push_back(expect_value(turn % 2 == 0 ? on->copy(memory, bytes.data(), 50 * turn + 1, after)
                                              : on->copy(bytes.data(), memory, 70 * turn, after)));
    if (turn % 11 == 0) {
      EXPECT_TRUE(made[turn / 2]->wait({}));
    }
  }
  for (const auto& each : made) {
    EXPECT_TRUE(each->wait({}));
    const auto times = times_of(each);
    seen.insert(seen.end(), {times.submitted_ns, times.started_ns, times.ended_ns});
  }
  seen.push_back(sim.clock());
  sim.free(memory, 5000);
  return seen;
}

TEST(sim_determinism, the_same_seed_produces_the_same_times) {
  for (const auto* options : {"", "effect=late", "effect=random,seed=9", "engines=1,latency=0"}) {
    EXPECT_EQ(walk(options), walk(options)) << options;
  }
}

}  // namespace
}  // namespace isthmus
