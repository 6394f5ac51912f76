// SPDX-License-Identifier: Apache-2.0
// An operation that runs on another queue keeps its position in the order of this one, even where
// the host has no memory left.

#include <optional>

#include "support/no_memory.hpp"
#include "transfer/submitting.hpp"
#include "unit/backend/refusing_queue.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace isthmus {
namespace {

using namespace sim_test;

class queue_insertion : public ::testing::Test {
 protected:
  Ref<Event> fence() const { return expect_value(sim.queue->fence({})); }

  const rig sim;
  const Ref<HostEvent> elsewhere = make_ref<HostEvent>();
};

TEST_F(queue_insertion, is_before_what_comes_next) {
  sim.queue->reserve_off_queue();
  EXPECT_FALSE(sim.queue->insert_off_queue(elsewhere));
  const auto next = fence();
  EXPECT_FALSE(sim.queue->is_known_idle());
  EXPECT_TRUE(next->pending());
  elsewhere->finish({});
  EXPECT_TRUE(next->wait({}));
}

TEST_F(queue_insertion, needs_no_memory) {
  sim.queue->reserve_off_queue();
  {
    const support::without_memory now;
    EXPECT_FALSE(sim.queue->insert_off_queue(elsewhere));
  }
  EXPECT_FALSE(sim.queue->is_known_idle());
  EXPECT_FALSE(sim.queue->idle());
  const auto all = expect_value(sim.queue->pending());
  const auto next = fence();
  const auto last = fence();
  EXPECT_TRUE(next->pending());
  EXPECT_TRUE(last->pending());
  EXPECT_TRUE(all->pending());
  elsewhere->finish({});
  EXPECT_TRUE(next->wait({}));
  EXPECT_TRUE(last->wait({}));
  EXPECT_TRUE(all->wait({}));
  EXPECT_TRUE(sim.queue->wait({}));
  EXPECT_TRUE(sim.queue->is_known_idle());
}

// After a submission that failed, the next one waits for it instead.
TEST_F(queue_insertion, is_kept_until_a_submission_stands_after_it) {
  sim.queue->reserve_off_queue();
  {
    const support::without_memory now;
    EXPECT_FALSE(sim.queue->insert_off_queue(elsewhere));
  }
  EXPECT_THROW(
      {
        const support::without_memory now;
        static_cast<void>(sim.queue->fence({}));
      },
      std::bad_alloc);
  const auto next = fence();
  EXPECT_TRUE(next->pending());
  elsewhere->finish(fail(ISTHMUS_ERROR_CALLBACK, "its own failure"));
  EXPECT_TRUE(next->wait({}));
}

TEST_F(queue_insertion, that_is_cancelled_leaves_nothing) {
  sim.queue->reserve_off_queue();
  sim.queue->cancel_off_queue();
  EXPECT_TRUE(sim.queue->is_known_idle());
  EXPECT_TRUE(fence()->wait({}));
}

// Accepts `fences_before_refusal` fences, and refuses everything else.
class refusing_queue final : public sim_test::RefusingQueue {
 public:
  explicit refusing_queue(const rig& sim) : RefusingQueue{*sim.test_context, *sim.test_device} {}

  int fences = 0;
  int fences_before_refusal = 0;
  Status refuses_with = ISTHMUS_ERROR_DRIVER;

 protected:
  [[nodiscard]] Error refusal() const override { return fail(refuses_with, "a broken driver"); }
  Submission do_fence(WaitList) override {
    return fences++ < fences_before_refusal ? Submission{completed_event()} : refusal();
  }
  void* native() const noexcept override { return const_cast<refusing_queue*>(this); }
};

class refused_insertion : public ::testing::Test {
 protected:
  const rig sim;
  const Ref<refusing_queue> on = make_ref<refusing_queue>(sim);
  const Ref<HostEvent> elsewhere = make_ref<HostEvent>();
};

TEST_F(refused_insertion, waits_for_nothing_without_external_work_on_the_queue) {
  on->reserve_off_queue();
  EXPECT_FALSE(on->insert_off_queue(elsewhere));
  EXPECT_EQ(on->fences, 1);
}

TEST_F(refused_insertion, is_reported_with_the_drivers_error) {
  ASSERT_TRUE(on->export_handle());
  on->reserve_off_queue();
  const auto refused = on->insert_off_queue(elsewhere);
  EXPECT_EQ(refused.code(), ISTHMUS_ERROR_DRIVER);
  EXPECT_NE(std::string{refused.message()}.find("a broken driver"), std::string::npos);
  EXPECT_GT(on->fences, 1);
}

TEST_F(refused_insertion, is_not_waited_for_on_a_lost_device) {
  ASSERT_TRUE(on->export_handle());
  on->refuses_with = ISTHMUS_ERROR_DEVICE_LOST;
  on->reserve_off_queue();
  EXPECT_FALSE(on->insert_off_queue(elsewhere));
  EXPECT_EQ(on->fences, 1);
}

TEST_F(refused_insertion, prevents_the_export_of_the_handle) {
  on->reserve_off_queue();
  EXPECT_FALSE(on->insert_off_queue(elsewhere));
  expect_failure(on->export_handle(), ISTHMUS_ERROR_DRIVER, "a broken driver");
  elsewhere->finish({});
  EXPECT_EQ(expect_value(on->export_handle()), on.get());
}

// The operation is already in flight: its failure is reported only after it has ended.
TEST_F(refused_insertion, fails_the_operation_once_it_has_ended) {
  ASSERT_TRUE(on->export_handle());
  on->fences_before_refusal = 1;  // the fence that the operation is ordered after
  TouchedMemory nothing;
  TransferOptions options;
  options.blocking = false;
  options.after = {elsewhere};
  const auto put = expect_value(submit_on_queue(
      *on, *sim.queue, nothing, options, [&](WaitList after) { return sim.queue->fence(after); }));
  EXPECT_TRUE(put->pending());
  elsewhere->finish({});
  const auto outcome = put->wait({});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.failure().code(), ISTHMUS_ERROR_DRIVER);
}

}  // namespace
}  // namespace isthmus
