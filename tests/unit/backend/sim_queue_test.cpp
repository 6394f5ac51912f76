// SPDX-License-Identifier: Apache-2.0
// Operations of a simulated queue: their effect on memory, and what they wait for.

#include "backend/order_only.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace isthmus {
namespace {

using sim_test::counted;
using sim_test::expect_failure;
using sim_test::expect_value;
using sim_test::rig;

class sim_effects : public testing::TestWithParam<const char*> {
 protected:
  rig sim{GetParam()};
};

TEST_P(sim_effects, copies_in_every_direction) {
  const auto bytes = counted(1000);
  auto* const one = sim.make(1000);
  auto* const two = sim.make(1000);
  auto* const shared = sim.make(1000, ISTHMUS_KIND_SHARED);
  std::vector<unsigned char> back(1000);
  sim.copy(one, bytes.data(), 1000);
  sim.copy(two + 1, one, 999);
  sim.copy(two, one, 1);
  sim.copy(two + 1, one + 1, 999);
  sim.copy(shared, two, 1000);
  ASSERT_TRUE(sim.copy(back.data(), shared, 1000)->wait({}));
  EXPECT_EQ(back, bytes);
  EXPECT_TRUE(std::equal(back.begin(), back.end(), shared));
  sim.free(one, 1000);
  sim.free(two, 1000);
  sim.free(shared, 1000, ISTHMUS_KIND_SHARED);
}

TEST_P(sim_effects, copies_rows) {
  const auto bytes = counted(20);
  auto* const memory = sim.make(30);
  FillPattern zero;
  static_cast<void>(expect_value(sim.queue->fill(memory, zero, 30, {})));
  const Copy2dShape shape{memory, 8, bytes.data(), 5, 3, 4};
  ASSERT_TRUE(expect_value(sim.queue->copy_2d(shape, {}))->wait({}));
  std::vector<unsigned char> expected(30);
  for (std::size_t row = 0; row < 4; ++row) {
    std::copy_n(&bytes[row * 5], 3, &expected[row * 8]);
  }
  EXPECT_EQ(sim.read(memory, 30), expected);
  sim.free(memory, 30);
}

TEST_P(sim_effects, fills_with_every_pattern) {
  auto* const memory = sim.make(480);
  for (const std::size_t length : {1U, 2U, 4U, 8U, 16U}) {
    FillPattern pattern;
    pattern.nbytes = length;
    const auto bytes = counted(length, 3);
    std::memcpy(pattern.bytes, bytes.data(), length);
    static_cast<void>(expect_value(sim.queue->fill(memory, pattern, 480, {})));
    const auto got = sim.read(memory, 480);
    for (std::size_t at = 0; at < 480; ++at) {
      ASSERT_EQ(got[at], bytes[at % length]) << length << " at " << at;
    }
  }
  sim.free(memory, 480);
}

TEST_P(sim_effects, hints_and_fences_complete) {
  auto* const shared = sim.make(64, ISTHMUS_KIND_SHARED);
  EXPECT_TRUE(expect_value(sim.queue->prefetch(shared, 64, false, {}))->wait({}));
  EXPECT_TRUE(expect_value(sim.queue->prefetch(shared, 64, true, {}))->wait({}));
  EXPECT_TRUE(expect_value(sim.queue->advise(shared, 64, 1, {}))->wait({}));
  EXPECT_TRUE(expect_value(sim.queue->fence({}))->wait({}));
  sim.free(shared, 64, ISTHMUS_KIND_SHARED);
}

TEST_P(sim_effects, waits_for_an_event_of_the_host) {
  const auto gate = make_ref<HostEvent>();
  auto* const memory = sim.make(4);
  unsigned char value = 1;
  sim.copy(memory, &value, 1, {gate});
  const auto behind = expect_value(sim.queue->fence({}));
  expect_failure(behind->wait(os::deadline_after(1'000'000)), ISTHMUS_ERROR_TIMEOUT);
  value = 2;
  gate->finish({});
  ASSERT_TRUE(behind->wait({}));
  value = 3;
  EXPECT_EQ(sim.read(memory, 1)[0], 2);
  sim.free(memory, 4);
}

TEST_P(sim_effects, waits_for_other_queues_and_devices) {
  rig other{GetParam()};
  const auto second = expect_value(Queue::create(*sim.test_context, *sim.test_device));
  const auto gate = make_ref<HostEvent>();
  unsigned char value = 5;
  unsigned char between = 0;
  unsigned char end = 0;
  auto* const memory = sim.make(1);
  auto* const theirs = other.make(1);
  const auto first = sim.copy(memory, &value, 1, {gate});
  const auto then = expect_value(second->copy(&between, memory, 1, std::vector{first}));
  const auto after = other.copy(theirs, &between, 1, {then});
  const auto last = expect_value(second->copy(&end, &between, 1, std::vector{after}));
  EXPECT_EQ(last->poll(), ISTHMUS_PENDING);
  gate->finish({});
  ASSERT_TRUE(last->wait({}));
  EXPECT_EQ(end, 5);
  EXPECT_TRUE(after->wait({}));
  sim.free(memory, 1);
  other.free(theirs, 1);
}

TEST_P(sim_effects, what_comes_only_after_a_failed_event_succeeds) {
  rig other{GetParam()};
  const auto gate = make_ref<HostEvent>();
  unsigned char from = 1;
  unsigned char to = 0;
  const auto failed = sim.copy(&to, &from, 1, {gate});
  const auto second = expect_value(Queue::create(*sim.test_context, *sim.test_device));
  const auto here = expect_value(second->fence(std::vector{order_only(failed)}));
  const auto there = expect_value(other.queue->fence(std::vector{order_only(failed)}));
  const auto foreign = expect_value(second->fence(std::vector{order_only(Ref<Event>{gate})}));
  EXPECT_FALSE(here->settled());
  EXPECT_FALSE(there->settled());
  EXPECT_FALSE(foreign->settled());
  gate->finish(fail(ISTHMUS_ERROR_CALLBACK, "the tap ran dry"));
  EXPECT_TRUE(here->wait({}));
  EXPECT_TRUE(there->wait({}));
  EXPECT_TRUE(foreign->wait({}));
  expect_failure(failed->wait({}), ISTHMUS_ERROR_DEPENDENCY, "the tap ran dry");
  EXPECT_TRUE(expect_value(other.queue->fence(std::vector{order_only(failed)}))->wait({}));
}

TEST_P(sim_effects, a_failed_event_fails_what_waits_for_it_and_nothing_else) {
  const auto gate = make_ref<HostEvent>();
  unsigned char from = 1;
  unsigned char to = 0;
  unsigned char also = 0;
  const auto failed = sim.copy(&to, &from, 1, {gate});
  const auto next = sim.copy(&also, &from, 1);
  const auto second = expect_value(Queue::create(*sim.test_context, *sim.test_device));
  const auto chained = expect_value(second->fence(std::vector{failed}));
  gate->finish(fail(ISTHMUS_ERROR_CALLBACK, "the tap ran dry"));
  expect_failure(failed->wait({}), ISTHMUS_ERROR_DEPENDENCY, "the tap ran dry");
  expect_failure(chained->wait({}), ISTHMUS_ERROR_DEPENDENCY, "the tap ran dry");
  EXPECT_TRUE(next->wait({}));
  EXPECT_EQ(to, 0);
  EXPECT_EQ(also, 1);
  EXPECT_TRUE(sim.queue->wait({}));
}

class add_one final : public HostFunction {
 public:
  explicit add_one(unsigned char* at) : at_{at} {}
  Error run(Context& where) noexcept override {
    ++*static_cast<unsigned char*>(where.function_address(at_));
    return {};
  }

 private:
  unsigned char* at_;
};

TEST_P(sim_effects, functions_run_in_order_on_device_memory) {
  auto* const memory = sim.make(1);
  unsigned char value = 41;
  sim.copy(memory, &value, 1);
  const auto ran = expect_value(sim.queue->run(std::make_unique<add_one>(memory), {}));
  EXPECT_EQ(sim.read(memory, 1)[0], 42);
  EXPECT_TRUE(ran->wait({}));
  sim.free(memory, 1);
}

TEST_P(sim_effects, many_in_a_row_need_no_stack) {
  const auto second = expect_value(Queue::create(*sim.test_context, *sim.test_device));
  const auto gate = make_ref<HostEvent>();
  unsigned char from = 7;
  unsigned char to = 0;
  auto last = expect_value(sim.queue->fence(std::vector<Ref<Event>>{gate}));
  for (int turn = 0; turn < 20'000; ++turn) {
    auto& on = turn % 2 == 0 ? second : sim.queue;
    last = expect_value(on->fence(std::vector{last}));
  }
  last = sim.copy(&to, &from, 1, {last});
  gate->finish({});
  ASSERT_TRUE(last->wait({}));
  EXPECT_EQ(to, 7);
}

INSTANTIATE_TEST_SUITE_P(all, sim_effects,
                         testing::Values("effect=early", "effect=late", "effect=random,seed=3"),
                         [](const auto& instance) {
                           const std::string text = instance.param;
                           return text.substr(7, text.find(',') - 7);
                         });

TEST(sim_queue, a_device_may_be_unable_to_wait_for_the_host) {
  rig sim{"wait_for_host=0"};
  EXPECT_FALSE(sim.test_device->can(ISTHMUS_CAN_WAIT_FOR_HOST));
  EXPECT_FALSE(sim.test_device->can(ISTHMUS_CAN_RUN_FUNCTIONS));
  const auto gate = make_ref<HostEvent>();
  unsigned char from = 1;
  unsigned char to = 0;
  const auto before = sim.copy(&to, &from, 1);
  gate->finish({});
  EXPECT_TRUE(sim.copy(&to, &from, 1, {gate, before})->wait({}));
  expect_failure(sim.queue->run(std::make_unique<add_one>(nullptr), {}), ISTHMUS_ERROR_UNSUPPORTED);
  EXPECT_EQ(sim.calls("event"), 0U);
}

TEST(sim_queue, a_closed_queue_refuses_and_still_runs) {
  rig sim{"effect=late"};
  const auto own = expect_value(Queue::create(*sim.test_context, *sim.test_device));
  unsigned char from = 1;
  unsigned char to = 0;
  const auto copied = expect_value(own->copy(&to, &from, 1, {}));
  own->close();
  expect_failure(own->fence({}), ISTHMUS_ERROR_CLOSED);
  EXPECT_TRUE(copied->wait({}));
  EXPECT_EQ(to, 1);
}

}  // namespace
}  // namespace isthmus
