// SPDX-License-Identifier: Apache-2.0
// One thread creates a ticket of several queues while another submits the fences that it waits for.
// Each of the two writes a number and then reads the number of the other: at least one must see the
// other. Otherwise the ticket passes with fences that do not cover its queues, and memory is reused
// while work still uses it.

#include "memory/pool/queue_fences.hpp"

#include <gtest/gtest.h>

#include <barrier>
#include <thread>

#include "support/eventually.hpp"
#include "support/sizes.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace isthmus::sim_test {
namespace {

class queue_fences_race : public testing::Test {
 protected:
  void TearDown() override { fences_->drop_queues(); }
  Ref<Queue> another_queue() {
    return expect_value(Queue::create(*sim_.test_context, *sim_.test_device));
  }
  Ticket next(Queue& on) { return fences_->next(fences_->find(&on)); }
  static void hold_up(Queue& on, const Ref<HostEvent>& gate) {
    const std::vector<Ref<Event>> after{gate};
    static_cast<void>(expect_value(on.fence(after)));
  }

  rig sim_{};
  Ref<QueueFences> fences_ = make_ref<QueueFences>();
};

TEST_F(queue_fences_race, a_joined_ticket_does_not_pass_with_an_earlier_fence) {
  constexpr int k_rounds = 4000 / support::k_slower;
  const std::vector<Ref<Queue>> busy{another_queue(), another_queue()};
  const std::vector<Ref<Queue>> idle{another_queue(), another_queue()};
  std::barrier begin{2}, end{2};
  std::thread fences{[&] {
    for (int round = 0; round < k_rounds; ++round) {
      begin.arrive_and_wait();
      fences_->fence();
      end.arrive_and_wait();
    }
  }};
  for (int round = 0; round < k_rounds; ++round) {
    // Makes the fences already cover an earlier ticket of several queues.
    static_cast<void>(fences_->joined(next(*idle[0]), next(*idle[1])));
    const auto gate = make_ref<HostEvent>();
    for (const auto& each : busy) {
      hold_up(*each, gate);
    }
    begin.arrive_and_wait();
    const auto both = fences_->joined(next(*busy[0]), next(*busy[1]));
    end.arrive_and_wait();
    EXPECT_FALSE(fences_->passed(both)) << "work on both queues is held up; round " << round;
    gate->finish({});
    EXPECT_TRUE(support::eventually([&] {
      fences_->fence();
      return fences_->passed(both);
    })) << "round "
        << round;
  }
  fences.join();
}

}  // namespace
}  // namespace isthmus::sim_test
