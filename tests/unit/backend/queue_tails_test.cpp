// SPDX-License-Identifier: Apache-2.0
// What a queue reports as unfinished while another thread records a submission.

#include <functional>
#include <thread>
#include <utility>

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
  explicit ScriptedQueue(const rig& sim) : RefusingQueue{*sim.test_context, *sim.test_device} {}

  void submit(const Ref<ObservedEvent>& event, std::function<void()> during = [] {}) {
    next_ = event;
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

}  // namespace
}  // namespace isthmus
