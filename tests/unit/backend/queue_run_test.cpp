// Functions in a queue's order: in which order they end, where a driver may be called, and how one
// goes that is refused.

#include <latch>
#include <utility>

#include "os/process.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace isthmus {
namespace {

using sim_test::expect_failure;
using sim_test::expect_value;
using sim_test::rig;

bool in_driver_call() noexcept { return os::detail::calls_of_this_thread != 0; }

// Runs once it may, and does something when it goes.
template <class AtEnd>
class watched_function final : public host_function {
 public:
  watched_function(const std::latch& may_run, AtEnd at_end)
      : may_run_{may_run}, at_end_{std::move(at_end)} {}
  ~watched_function() override { at_end_(); }
  error run(context&) noexcept override {
    may_run_.wait();
    return {};
  }

 private:
  const std::latch& may_run_;
  AtEnd at_end_;
};

template <class Seen>
class when_complete final : public continuation {
 public:
  explicit when_complete(Seen seen) : seen_{std::move(seen)} {}
  void run(event&) noexcept override {
    seen_();
    delete this;
  }

 private:
  Seen seen_;
};

// What comes next on the queue finds that the function has gone and ended. All of it is counted as
// a call of a driver's, so that the end of the process, which a caller may begin as soon as the
// function has ended, waits for the rest.
TEST(queue_run, a_function_goes_and_ends_before_what_comes_next) {
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
      sim.on->run(std::make_unique<watched_function<decltype(at_end)>>(may_run, at_end), {}));
  const auto next = expect_value(sim.on->fence({}));
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

// What it owns may submit to the same queue as it goes.
TEST(queue_run, a_function_that_is_refused_goes_outside_the_queues_lock) {
  const std::latch never{1};
  for (const auto* refused : {"fail=fence:1", "fail=fence:2"}) {
    rig sim;
    bool has_submitted = false;
    const auto at_end = [&] { has_submitted = bool{sim.on->fence({})}; };
    sim.configure(refused);
    expect_failure(
        sim.on->run(std::make_unique<watched_function<decltype(at_end)>>(never, at_end), {}),
        ISTHMUS_ERROR_DRIVER, "fence");
    EXPECT_TRUE(has_submitted) << refused;
    EXPECT_TRUE(sim.on->wait({}));
  }
}

}  // namespace
}  // namespace isthmus
