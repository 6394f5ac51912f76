// An operation that another queue carries out has its place in the order of this one, whatever the
// host's memory.

#include "support/no_memory.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace isthmus {
namespace {

using namespace sim_test;

class queue_place : public ::testing::Test {
 protected:
  ref<event> fence() const { return expect_value(sim.on->fence({})); }

  const rig sim;
  const ref<host_event> elsewhere = make_ref<host_event>();
};

TEST_F(queue_place, is_before_what_comes_next) {
  sim.on->reserve_place();
  sim.on->take_place(elsewhere);
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
    sim.on->take_place(elsewhere);
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

// A submission that fails leaves it to the next one.
TEST_F(queue_place, is_kept_until_a_submission_stands_after_it) {
  sim.on->reserve_place();
  {
    const support::without_memory now;
    sim.on->take_place(elsewhere);
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

}  // namespace
}  // namespace isthmus
