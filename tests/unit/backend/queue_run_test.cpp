// SPDX-License-Identifier: Apache-2.0
// Host functions in the order of a queue: when they are destroyed and complete, where the driver
// may be called, and what happens to a function that is refused.

#include <latch>
#include <utility>

#include "os/process.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace isthmus {
namespace {

using sim_test::expect_failure;
using sim_test::expect_value;
using sim_test::rig;

bool in_driver_call() noexcept { return os::detail::thread_driver_calls != 0; }

// Runs once `may_run` allows it, and calls `at_end` when it is destroyed.
template <class AtEnd>
class watched_function final : public HostFunction {
 public:
  watched_function(const std::latch& may_run, AtEnd at_end)
      : may_run_{may_run}, at_end_{std::move(at_end)} {}
  ~watched_function() override { at_end_(); }
  Error run(Context&) noexcept override {
    may_run_.wait();
    return {};
  }

 private:
  const std::latch& may_run_;
  AtEnd at_end_;
};

template <class Seen>
class when_complete final : public Continuation {
 public:
  explicit when_complete(Seen seen) : seen_{std::move(seen)} {}
  void run(Event&) noexcept override {
    seen_();
    delete this;
  }

 private:
  Seen seen_;
};

// The next operation of the queue begins after the function was destroyed and its event completed.
// All of it counts as a driver call. A caller may begin to end the process as soon as the function
// has ended; the exit then waits for the rest.
TEST(queue_run, a_function_is_destroyed_and_completes_before_the_next_operation) {
  rig sim;
  std::latch may_run{1};
  std::latch over{1};
  bool has_gone = false;
  bool went_in_call = false;
  bool was_gone_at_end = false;
  bool ended_in_call = false;
  bool had_ended_at_next = false;
  bool next_in_call = false;
  const auto at_end = [&] {
    has_gone = true;
    went_in_call = in_driver_call();
  };
  const auto ended = expect_value(
      sim.queue->run(std::make_unique<watched_function<decltype(at_end)>>(may_run, at_end), {}));
  const auto next = expect_value(sim.queue->fence({}));
  const auto seen_end = [&] {
    was_gone_at_end = has_gone;
    ended_in_call = in_driver_call();
  };
  const auto seen_next = [&] {
    had_ended_at_next = ended->settled();
    next_in_call = in_driver_call();
    over.count_down();
  };
  ended->on_complete(*new when_complete{seen_end});
  next->on_complete(*new when_complete{seen_next});
  may_run.count_down();
  over.wait();
  EXPECT_TRUE(went_in_call);
  EXPECT_TRUE(was_gone_at_end);
  EXPECT_TRUE(ended_in_call);
  EXPECT_TRUE(had_ended_at_next);
  EXPECT_TRUE(next_in_call);
  EXPECT_TRUE(ended->wait({}));
}

// Destroying what the function owns may submit to the same queue.
TEST(queue_run, a_refused_function_is_destroyed_outside_the_queues_lock) {
  const std::latch never{1};
  for (const auto* refused : {"fail=fence:1", "fail=fence:2"}) {
    rig sim;
    bool has_submitted = false;
    const auto at_end = [&] { has_submitted = bool{sim.queue->fence({})}; };
    sim.configure(refused);
    expect_failure(
        sim.queue->run(std::make_unique<watched_function<decltype(at_end)>>(never, at_end), {}),
        ISTHMUS_ERROR_DRIVER, "fence");
    EXPECT_TRUE(has_submitted) << refused;
    EXPECT_TRUE(sim.queue->wait({}));
  }
}

}  // namespace
}  // namespace isthmus
