// SPDX-License-Identifier: Apache-2.0
// When bytes move: a missing wait shows as wrong data, a correct program sees right data.

#include <latch>
#include <thread>

#include "unit/backend/sim_fixture.hpp"

namespace isthmus {
namespace {

using sim_test::expect_value;
using sim_test::rig;

TEST(sim_late, nothing_happens_until_it_is_polled) {
  rig sim{"effect=late"};
  unsigned char from = 1;
  unsigned char to = 0;
  const auto copied = sim.copy(&to, &from, 1);
  EXPECT_EQ(to, 0) << "who reads without a wait reads what was there before";
  from = 2;
  EXPECT_TRUE(copied->wait({}));
  EXPECT_EQ(to, 2) << "and who reuses the source without a wait sends what is there now";
}

TEST(sim_late, the_first_poll_finds_it_pending) {
  rig sim{"effect=late,latency=0"};
  unsigned char from = 1;
  unsigned char to = 0;
  const auto copied = sim.copy(&to, &from, 1);
  EXPECT_EQ(copied->poll(), ISTHMUS_PENDING);
  EXPECT_EQ(to, 0);
  EXPECT_EQ(copied->poll(), ISTHMUS_OK);
  EXPECT_EQ(to, 1);
}

TEST(sim_late, polling_ends) {
  rig sim{"effect=late"};
  const auto reached = expect_value(sim.queue->fence({}));
  auto* const memory = sim.make(1U << 20);
  const auto filled = expect_value(sim.queue->fill(memory, {}, 1U << 20, {}));
  int looks = 0;
  while (filled->pending()) {
    ASSERT_LT(++looks, 1000);
  }
  EXPECT_GE(looks, 2);
  sim.free(memory, 1U << 20);
}

// Blocks the thread that completes its event.
class Blocker final : public Continuation {
 public:
  void run(Event&) noexcept override {
    reached.count_down();
    released.wait();
  }
  std::latch reached{1};
  std::latch released{1};
};

// One thread ends two operations and stops before it completes the second one.
TEST(sim_late, an_event_is_complete_once_a_later_one_is) {
  rig sim{"effect=late"};
  Blocker blocker;
  const auto first = expect_value(sim.queue->fence({}));
  const auto second = expect_value(sim.queue->fence({}));
  first->on_complete_lazily(blocker);
  std::thread blocked{[&] { EXPECT_TRUE(second->wait({})); }};
  blocker.reached.wait();
  EXPECT_TRUE(expect_value(sim.queue->fence({}))->wait({}));
  EXPECT_EQ(second->poll(), ISTHMUS_OK);
  blocker.released.count_down();
  blocked.join();
}

TEST(sim_late, a_wait_brings_all_that_is_before_it_and_nothing_else) {
  rig sim{"effect=late"};
  rig other{"effect=late"};
  const auto second = expect_value(Queue::create(*sim.test_context, *sim.test_device));
  unsigned char one = 1;
  unsigned char a = 0;
  unsigned char b = 0;
  unsigned char c = 0;
  unsigned char d = 0;
  unsigned char e = 0;
  other.copy(&a, &one, 1);
  const auto theirs = other.copy(&b, &a, 1);
  other.copy(&e, &one, 1);
  sim.copy(&c, &b, 1, {theirs});
  const auto last = sim.copy(&d, &c, 1);
  static_cast<void>(expect_value(second->copy(&e, &one, 1, {})));
  EXPECT_EQ(a + b + c + d, 0);
  ASSERT_TRUE(last->wait({}));
  EXPECT_EQ(a + b + c + d, 4);
  EXPECT_EQ(e, 0) << "nobody asked for what stands beside or behind it";
  EXPECT_TRUE(second->wait({}));
  EXPECT_EQ(e, 1);
}

TEST(sim_late, a_wait_without_time_only_polls) {
  rig sim{"effect=late"};
  unsigned char from = 1;
  unsigned char to = 0;
  const auto copied = sim.copy(&to, &from, 1);
  EXPECT_FALSE(copied->wait(os::deadline_after(0)));
  EXPECT_LE(sim.clock(), 3'000U);
  EXPECT_TRUE(copied->wait({}));
}

class note final : public Continuation {
 public:
  explicit note(int& runs) : runs_{runs} {}
  void run(Event&) noexcept override { ++runs_; }

 private:
  int& runs_;
};

TEST(sim_late, a_continuation_polls_unless_it_is_lazy) {
  rig sim{"effect=late"};
  int at_leisure = 0;
  int urgent = 0;
  note patient{at_leisure};
  note eager{urgent};
  const auto first = expect_value(sim.queue->fence({}));
  first->on_complete_lazily(patient);
  EXPECT_EQ(at_leisure, 0);
  expect_value(sim.queue->fence({}))->on_complete(eager);
  EXPECT_EQ(urgent, 1);
  EXPECT_EQ(at_leisure, 1);
}

TEST(sim_early, bytes_move_at_once_and_the_event_takes_its_time) {
  rig sim;
  unsigned char from = 1;
  unsigned char to = 0;
  const auto copied = sim.copy(&to, &from, 1);
  EXPECT_EQ(to, 1);
  EXPECT_EQ(copied->poll(), ISTHMUS_PENDING);
  EXPECT_TRUE(copied->wait({}));
}

TEST(sim_early, what_waited_for_the_host_runs_when_the_host_is_done) {
  rig sim;
  const auto gate = make_ref<HostEvent>();
  unsigned char from = 1;
  unsigned char to = 0;
  sim.copy(&to, &from, 1, {gate});
  EXPECT_EQ(to, 0);
  gate->finish({});
  EXPECT_EQ(to, 1);
}

std::string which_were_early(const std::string& options) {
  rig sim{options};
  std::string seen;
  for (int turn = 0; turn < 40; ++turn) {
    const auto own = expect_value(Queue::create(*sim.test_context, *sim.test_device));
    unsigned char from = 1;
    unsigned char to = 0;
    const auto copied = expect_value(own->copy(&to, &from, 1, {}));
    seen += to == 1 ? 'e' : 'l';
    EXPECT_TRUE(copied->wait({}));
    EXPECT_EQ(to, 1);
  }
  return seen;
}

TEST(sim_random, is_determined_by_its_seed) {
  const auto seen = which_were_early("effect=random,seed=5");
  EXPECT_NE(seen.find('e'), std::string::npos);
  EXPECT_NE(seen.find('l'), std::string::npos);
  EXPECT_EQ(which_were_early("effect=random,seed=5"), seen);
  EXPECT_NE(which_were_early("effect=random,seed=6"), seen);
}

TEST(sim_effect, can_change) {
  rig sim;
  sim.configure("effect=late");
  unsigned char from = 1;
  unsigned char to = 0;
  const auto late = sim.copy(&to, &from, 1);
  EXPECT_EQ(to, 0);
  EXPECT_TRUE(late->wait({}));
  sim.configure("effect=early");
  from = 3;
  sim.copy(&to, &from, 1);
  EXPECT_EQ(to, 3);
}

}  // namespace
}  // namespace isthmus
