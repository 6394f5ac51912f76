// SPDX-License-Identifier: Apache-2.0
// What a queue reports as unfinished while another thread records a submission.

#include <functional>
#include <thread>
#include <utility>

#include "backend/function_waits.hpp"
#include "unit/backend/refusing_queue.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace isthmus {
namespace {

using sim_test::expect_value;
using sim_test::RefusingQueue;
using sim_test::rig;

// Calls a function when it is destroyed.
class ObservedEvent final : public Event {
 public:
  explicit ObservedEvent(std::function<void()> on_destroy = [] {})
      : on_destroy_{std::move(on_destroy)} {}
  void finish() { complete({}); }

 private:
  ~ObservedEvent() override { on_destroy_(); }

  const std::function<void()> on_destroy_;
};

// A queue whose fences return the events that the test provides.
class ScriptedQueue final : public RefusingQueue {
 public:
  explicit ScriptedQueue(const rig& sim, QueueTraits traits = {})
      : RefusingQueue{*sim.test_context, *sim.test_device, traits} {}

  void next(Ref<ObservedEvent> event) { next_ = std::move(event); }
  void submit(const Ref<ObservedEvent>& event, std::function<void()> during = [] {}) {
    next(event);
    during_ = std::move(during);
    static_cast<void>(expect_value(fence({})));
  }

 protected:
  Submission do_fence(WaitList) override {
    const Ref<Event> event{std::exchange(next_, {})};
    std::exchange(during_, [] {})();
    return event;
  }

 private:
  Ref<ObservedEvent> next_;
  std::function<void()> during_ = [] {};
};

// The queue drops the tails of earlier submissions one at a time, outside its lock.
TEST(queue_tails, always_include_the_newest_submission) {
  const rig sim;
  const auto queue = make_ref<ScriptedQueue>(sim);
  int observations = 0;
  int idle = 0;
  const auto observe = [&] {
    ++observations;
    idle += static_cast<int>(queue->is_known_idle());
  };
  {
    const auto first = make_ref<ObservedEvent>(observe);
    const auto concurrent = make_ref<ObservedEvent>(observe);
    queue->submit(first, [&] { std::thread{[&] { queue->submit(concurrent); }}.join(); });
    first->finish();
    concurrent->finish();
  }
  const auto pending = make_ref<ObservedEvent>();
  queue->submit(pending);
  EXPECT_EQ(observations, 2);
  EXPECT_EQ(idle, 0) << "the queue has a pending operation";
  pending->finish();
  EXPECT_TRUE(queue->is_known_idle());
}

// The functions that an operation after `events` follows.
std::vector<QueuePosition> followed_by(WaitList events) {
  std::vector<QueuePosition> followed;
  add_followed_functions(positions_of(events), followed);
  return followed;
}

// The fence that stands for external work follows the functions before it, and none after it.
TEST(queue_tails, of_an_exported_queue_precede_later_functions) {
  const rig sim;
  QueueTraits traits;
  traits.is_adopted = true;
  const auto queue = make_ref<ScriptedQueue>(sim, traits);
  const auto report_unfinished = [&] {
    queue->next(make_ref<ObservedEvent>());
    std::vector<Ref<Event>> unfinished;
    EXPECT_TRUE(queue->unfinished(unfinished));
    return unfinished;
  };
  std::vector<Ref<Event>> before = report_unfinished();
  PendingFunction function;
  function.begin({queue->serial(), 0});
  EXPECT_TRUE(followed_by(before).empty()) << "nothing was submitted";
  queue->submit(make_ref<ObservedEvent>());  // the function's end
  before = report_unfinished();
  EXPECT_EQ(followed_by(before).size(), 1U);
  PendingFunction later;
  later.begin({queue->serial(), 1});
  ASSERT_EQ(followed_by(before).size(), 1U);
  EXPECT_EQ(followed_by(before).front().number, 0U) << "not the later function";
}

}  // namespace
}  // namespace isthmus
