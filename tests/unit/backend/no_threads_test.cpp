// SPDX-License-Identifier: Apache-2.0
// What happens where no thread can be started: nothing hangs, work is done as soon as a thread
// exists, and objects of a refused operation may use the same queue.

#include "support/no_threads.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <vector>

#include "backend/deferring_queue.hpp"
#include "backend/drivers.hpp"
#include "backend/library_threads.hpp"
#include "memory/pool/pool.hpp"
#include "support/eventually.hpp"
#include "support/watchdog.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace isthmus {
namespace {

using namespace std::chrono_literals;
using sim_test::expect_failure;
using sim_test::expect_value;
using sim_test::rig;
using support::eventually;
using support::without_threads;

// Runs `body` in a child process in which the library has no thread yet. If `body` never returns,
// the watchdog ends the process.
template <class Body>
[[noreturn]] void leave_after(Body body) {
  const support::watchdog guard{"a process without threads"};
  body();
  std::fflush(nullptr);
  _exit(testing::Test::HasFailure() ? 1 : 0);
}

class no_threads : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  template <class Body>
  static void expect_in_its_own_process(Body body) {
    EXPECT_EXIT(leave_after(body), testing::ExitedWithCode(0), "");
  }
  static void start_a_thread() {
    run_on_library_thread([] {}, [](const Error& why) { ADD_FAILURE() << why.message(); });
  }
};

TEST_F(no_threads, work_is_refused_until_there_are_some) {
  expect_in_its_own_process([] {
    {
      const without_threads now;
      expect_failure(ReservedWork::make([] {}), ISTHMUS_ERROR_OUT_OF_MEMORY,
                     "cannot start a thread");
      bool is_refused = false;
      run_on_library_thread(
          [] { ADD_FAILURE() << "on which thread?"; },
          [&](const Error& why) { is_refused = why.code() == ISTHMUS_ERROR_OUT_OF_MEMORY; });
      EXPECT_TRUE(is_refused);
    }
    std::atomic<bool> has_run{false};
    auto work = expect_value(ReservedWork::make([&] { has_run = true; }));
    work.start();
    EXPECT_TRUE(eventually([&] { return has_run.load(); }));
  });
}

// An idle thread is reserved for one piece of work at a time.
TEST_F(no_threads, an_idle_thread_is_reserved_once) {
  expect_in_its_own_process([] {
    std::atomic<int> has_run{0};
    const auto reserve = [&](std::optional<ReservedWork>& kept) {
      auto made = ReservedWork::make([&] { ++has_run; });
      if (made) {
        kept.emplace(*std::move(made));
      }
      return kept.has_value();
    };
    start_a_thread();
    const without_threads now;
    std::optional<ReservedWork> first;
    std::optional<ReservedWork> second;
    ASSERT_TRUE(eventually([&] { return reserve(first); })) << "once the thread is idle";
    EXPECT_FALSE(reserve(second));
    first.reset();  // never started
    ASSERT_TRUE(reserve(second));
    EXPECT_FALSE(reserve(first));
    second->start();
    EXPECT_TRUE(eventually([&] { return has_run == 1; }));
    EXPECT_TRUE(eventually([&] { return reserve(first); })) << "idle again";
  });
}

std::atomic<bool> idle_work_is_done{false};

os::Deadline do_idle_work() noexcept {
  idle_work_is_done = true;
  return {};
}

TEST_F(no_threads, what_is_done_when_idle_is_done_by_the_first_thread_there_is) {
  expect_in_its_own_process([] {
    {
      const without_threads now;
      run_when_idle(do_idle_work, os::Clock::now());
    }
    EXPECT_FALSE(idle_work_is_done);
    start_a_thread();
    EXPECT_TRUE(eventually([] { return idle_work_is_done.load(); }));
  });
}

TEST_F(no_threads, a_pool_decays_once_there_is_one) {
  expect_in_its_own_process([] {
    constexpr std::size_t k_block = std::size_t{1} << 20;
    rig sim;
    const auto from =
        expect_value(Pool::create(*sim.test_context, *sim.test_device, ISTHMUS_KIND_DEVICE,
                                  {.growth_bytes = k_block, .remaps = false, .decay = 1ms}));
    {
      const without_threads now;
      auto* const memory = expect_value(from->allocate(k_block, 0, *sim.queue));
      EXPECT_TRUE(from->deallocate(memory, k_block, sim.queue.get()));
    }
    EXPECT_EQ(from->usage().held_bytes, k_block);
    start_a_thread();
    EXPECT_TRUE(eventually([&] { return from->usage().held_bytes == 0; }));
  });
}

// An event whose completion is found only by polling.
class looked_at final : public PolledEvent {
 public:
  void end() noexcept { has_ended_ = true; }

 protected:
  void refresh() noexcept override {
    if (has_ended_) {
      complete({});
    }
  }

 private:
  std::atomic<bool> has_ended_{false};
};

// `second` completes after `first`, which is polled because it has a continuation.
struct watched_pair {
  Ref<looked_at> first = make_ref<looked_at>();
  Ref<Event> second;

  watched_pair() {
    first->mark_enqueued();
    second = end_of_all(std::vector<Ref<Event>>{first});
  }
};

TEST_F(no_threads, a_waiting_thread_polls_watched_events) {
  expect_in_its_own_process([] {
    const without_threads now;
    const watched_pair events;
    events.first->end();
    EXPECT_FALSE(events.second->settled()) << "who looked?";
    EXPECT_TRUE(events.second->wait(std::nullopt));
  });
}

TEST_F(no_threads, the_next_event_starts_the_thread_that_watches) {
  expect_in_its_own_process([] {
    std::optional<watched_pair> events;
    {
      const without_threads now;
      events.emplace();
    }
    events->first->end();
    EXPECT_FALSE(events->second->settled()) << "who looked?";
    const auto next = make_ref<looked_at>();
    EXPECT_TRUE(eventually([&] { return events->second->settled(); }));
  });
}

template <class AtEnd>
class ending_function final : public HostFunction {
 public:
  explicit ending_function(AtEnd at_end) : at_end_{std::move(at_end)} {}
  ~ending_function() override { at_end_(); }
  Error run(Context&) noexcept override {
    ADD_FAILURE() << "on which thread?";
    return {};
  }

 private:
  AtEnd at_end_;
};

// The function is destroyed on the thread that submitted it, while the queue's lock is not held.
TEST_F(no_threads, what_a_function_owns_may_use_the_queue_that_refuses_it) {
  for (const char* filter : {"host", "sim"}) {
    SCOPED_TRACE(filter);
    expect_in_its_own_process([&] {
      const bool simulated = std::string{filter} == "sim";
      const auto sim = simulated ? std::make_unique<rig>() : nullptr;
      auto* const where = simulated ? sim->test_device.get() : expect_value(find_device(filter));
      const auto on = expect_value(Platform::default_queue(*where));
      bool has_submitted = false;
      const auto at_end = [&] { has_submitted = bool{on->fence({})}; };
      const without_threads now;
      auto ended = on->run(std::make_unique<ending_function<decltype(at_end)>>(at_end), {});
      const auto outcome = ended ? (*ended)->wait(std::nullopt) : Result<void>{ended.take_error()};
      expect_failure(outcome, ISTHMUS_ERROR_OUT_OF_MEMORY, "cannot start a thread");
      EXPECT_TRUE(has_submitted);
      EXPECT_TRUE(expect_value(on->fence({}))->wait(std::nullopt));
    });
  }
}

// A queue without a driver: its operations own an object of the test and end as soon as they are
// submitted.
class owning_queue final : public DeferringQueue {
 public:
  using DeferringQueue::DeferringQueue;

  Result<Ref<Event>> put(WaitList after, std::shared_ptr<void> owned) {
    auto made = make_ref<looked_at>();
    return enqueue_or_defer(made, after, [made, owned = std::move(owned)](WaitList) -> Error {
      made->end();
      made->mark_enqueued();
      return {};
    });
  }

 protected:
  Result<Ref<Event>> do_copy(void*, const void*, std::size_t, WaitList) override { return none(); }
  Result<Ref<Event>> do_copy_2d(const Copy2dShape&, WaitList) override { return none(); }
  Result<Ref<Event>> do_copy_ranges(const RangedCopy&, WaitList) override { return none(); }
  Result<Ref<Event>> do_fill(void*, const FillPattern&, std::size_t, WaitList) override {
    return none();
  }
  Result<Ref<Event>> do_fence(WaitList after) override { return put(after, nullptr); }
  [[nodiscard]] bool can_wait_for(Event&) const noexcept override { return false; }

 private:
  static Error none() { return fail(ISTHMUS_ERROR_UNSUPPORTED, "not in this test"); }
};

TEST_F(no_threads, what_a_held_operation_owns_may_use_the_queue_that_refuses_it) {
  expect_in_its_own_process([] {
    auto* const where = expect_value(find_device("host"));
    const auto home = expect_value(where->platform().default_context());
    const auto on = make_ref<owning_queue>(*home, *where, QueueTraits{});
    const auto gate = make_ref<HostEvent>();
    const std::vector<Ref<Event>> after{gate};
    bool has_put = false;
    const std::shared_ptr<void> nothing;
    std::shared_ptr<void> owned{&has_put, [&](void*) { has_put = bool{on->put({}, nothing)}; }};
    {
      const without_threads now;
      expect_failure(on->put(after, std::exchange(owned, nullptr)), ISTHMUS_ERROR_OUT_OF_MEMORY,
                     "cannot start a thread");
      EXPECT_TRUE(has_put);
      EXPECT_FALSE(on->has_deferred_operations());
    }
    const auto held = expect_value(on->put(after, nullptr));
    EXPECT_TRUE(on->has_deferred_operations());
    gate->finish({});
    EXPECT_TRUE(held->wait(std::nullopt));
  });
}

}  // namespace
}  // namespace isthmus
