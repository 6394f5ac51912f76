// SPDX-License-Identifier: Apache-2.0
// An operation that runs on another queue keeps its position in the order of this one, even where
// the host has no memory left.

#include <optional>

#include "support/no_memory.hpp"
#include "transfer/submitting.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace isthmus {
namespace {

using namespace sim_test;

class queue_place : public ::testing::Test {
 protected:
  Ref<Event> fence() const { return expect_value(sim.on->fence({})); }

  const rig sim;
  const Ref<HostEvent> elsewhere = make_ref<HostEvent>();
};

TEST_F(queue_place, is_before_what_comes_next) {
  sim.on->reserve_place();
  EXPECT_FALSE(sim.on->take_place(elsewhere));
  const auto next = fence();
  EXPECT_FALSE(sim.on->quiet());
  EXPECT_TRUE(next->pending());
  elsewhere->finish({});
  EXPECT_TRUE(next->wait({}));
}

TEST_F(queue_place, needs_no_memory) {
  sim.on->reserve_place();
  {
    const support::without_memory now;
    EXPECT_FALSE(sim.on->take_place(elsewhere));
  }
  EXPECT_FALSE(sim.on->quiet());
  EXPECT_FALSE(sim.on->idle());
  const auto all = expect_value(sim.on->pending());
  const auto next = fence();
  const auto last = fence();
  EXPECT_TRUE(next->pending());
  EXPECT_TRUE(last->pending());
  EXPECT_TRUE(all->pending());
  elsewhere->finish({});
  EXPECT_TRUE(next->wait({}));
  EXPECT_TRUE(last->wait({}));
  EXPECT_TRUE(all->wait({}));
  EXPECT_TRUE(sim.on->wait({}));
  EXPECT_TRUE(sim.on->quiet());
}

// After a submission that failed, the next one waits for it instead.
TEST_F(queue_place, is_kept_until_a_submission_stands_after_it) {
  sim.on->reserve_place();
  {
    const support::without_memory now;
    EXPECT_FALSE(sim.on->take_place(elsewhere));
  }
  EXPECT_THROW(
      {
        const support::without_memory now;
        static_cast<void>(sim.on->fence({}));
      },
      std::bad_alloc);
  const auto next = fence();
  EXPECT_TRUE(next->pending());
  elsewhere->finish(fail(ISTHMUS_ERROR_CALLBACK, "its own failure"));
  EXPECT_TRUE(next->wait({}));
}

TEST_F(queue_place, that_is_given_up_leaves_nothing) {
  sim.on->reserve_place();
  sim.on->give_up_place();
  EXPECT_TRUE(sim.on->quiet());
  EXPECT_TRUE(fence()->wait({}));
}

// A queue whose driver refuses all operations, fences included.
class refusing_queue final : public Queue {
 public:
  explicit refusing_queue(const rig& sim) : Queue{*sim.home, *sim.where, false} {}

  int fences = 0;
  int fences_before_refusal = 0;
  Status refuses_with = ISTHMUS_ERROR_DRIVER;

 protected:
  using given = Result<Ref<Event>>;
  given do_copy(void*, const void*, std::size_t, WaitList) override { return refuse_all(); }
  given do_copy_2d(const Copy2dShape&, WaitList) override { return refuse_all(); }
  given do_copy_ranges(const RangedCopy&, WaitList) override { return refuse_all(); }
  given do_fill(void*, const FillPattern&, std::size_t, WaitList) override { return refuse_all(); }
  given do_fence(WaitList) override {
    return fences++ < fences_before_refusal ? given{completed_event()} : refuse_all();
  }
  bool knows(Event&) const noexcept override { return true; }
  void* native() const noexcept override { return const_cast<refusing_queue*>(this); }

 private:
  given refuse_all() const { return fail(refuses_with, "a broken driver"); }
};

class refused_place : public ::testing::Test {
 protected:
  const rig sim;
  const Ref<refusing_queue> on = make_ref<refusing_queue>(sim);
  const Ref<HostEvent> elsewhere = make_ref<HostEvent>();
};

TEST_F(refused_place, waits_for_nothing_where_nobody_else_uses_the_queue) {
  on->reserve_place();
  EXPECT_FALSE(on->take_place(elsewhere));
  EXPECT_EQ(on->fences, 1);
}

TEST_F(refused_place, is_reported_with_the_drivers_error) {
  ASSERT_TRUE(on->lend());
  on->reserve_place();
  const auto refused = on->take_place(elsewhere);
  EXPECT_EQ(refused.code(), ISTHMUS_ERROR_DRIVER);
  EXPECT_NE(std::string{refused.message()}.find("a broken driver"), std::string::npos);
  EXPECT_GT(on->fences, 1);
}

TEST_F(refused_place, is_not_waited_for_on_a_lost_device) {
  ASSERT_TRUE(on->lend());
  on->refuses_with = ISTHMUS_ERROR_DEVICE_LOST;
  on->reserve_place();
  EXPECT_FALSE(on->take_place(elsewhere));
  EXPECT_EQ(on->fences, 1);
}

TEST_F(refused_place, keeps_the_handle_from_others) {
  on->reserve_place();
  EXPECT_FALSE(on->take_place(elsewhere));
  expect_failure(on->lend(), ISTHMUS_ERROR_DRIVER, "a broken driver");
  elsewhere->finish({});
  EXPECT_EQ(expect_value(on->lend()), on.get());
}

// The operation is already in flight: its failure is reported only after it has ended.
TEST_F(refused_place, fails_the_operation_once_it_has_ended) {
  ASSERT_TRUE(on->lend());
  on->fences_before_refusal = 1;  // the fence that the operation is ordered after
  TouchedMemory nothing;
  TransferOptions options;
  options.blocking = false;
  options.after = {elsewhere};
  const auto put = expect_value(on_queue(*on, *sim.on, nothing, options,
                                         [&](WaitList after) { return sim.on->fence(after); }));
  EXPECT_TRUE(put->pending());
  elsewhere->finish({});
  const auto outcome = put->wait({});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.failure().code(), ISTHMUS_ERROR_DRIVER);
}

}  // namespace
}  // namespace isthmus
