// SPDX-License-Identifier: Apache-2.0
// Deferred releases: objects are released eventually, however many others there are.

#include "memory/base/deferred_release.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "backend/drivers.hpp"
#include "backend/queue.hpp"
#include "core/never_destroyed.hpp"
#include "memory/base/library_call.hpp"
#include "memory/pool/pool.hpp"
#include "memory/records/allocation_lookup.hpp"
#include "memory/records/facts.hpp"
#include "unit/backend/refusing_queue.hpp"

namespace isthmus {
namespace {

using namespace std::chrono_literals;

// Retires itself again at once until `is_over` is set.
class busy final : public Releasable {
 public:
  explicit busy(const std::atomic<bool>& is_over) : is_over_{is_over} {}
  void release_now() noexcept override {
    if (is_over_.load()) {
      ended_.store(true);
    } else {
      defer_release(*this);
    }
  }
  [[nodiscard]] bool ended() const noexcept { return ended_.load(); }

 private:
  const std::atomic<bool>& is_over_;
  std::atomic<bool> ended_{false};
};

// Is released only at the fourth attempt.
class stubborn final : public Releasable {
 public:
  void release_now() noexcept override {
    if (++tries_ < 4) {
      retry_release(*this);
    } else {
      gone_.store(true);
    }
  }
  [[nodiscard]] bool gone() const noexcept { return gone_.load(); }

 private:
  int tries_ = 0;
  std::atomic<bool> gone_{false};
};

// A queue that temporarily cannot report its work, like a CUDA stream that is being captured.
class captured_queue final : public sim_test::RefusingQueue {
 public:
  captured_queue(Context& context, Device& device, bool is_queried_on_demand = false)
      : RefusingQueue{
            context, device, {.is_adopted = true, .is_queried_on_demand = is_queried_on_demand}} {}
  void end_capture() noexcept { captured_.store(false); }
  [[nodiscard]] int asked() const noexcept { return asked_.load(); }

 private:
  [[nodiscard]] Error refusal() const override {
    return fail(ISTHMUS_ERROR_UNSUPPORTED, "it is being captured");
  }
  Submission do_fence(WaitList) override {
    asked_.fetch_add(1);
    return captured_.load() ? Submission{refusal()} : completed_event();
  }
  [[nodiscard]] bool can_wait_for(Event&) const noexcept override { return false; }

  std::atomic<bool> captured_{true};
  std::atomic<int> asked_{0};
};

// Is released once the work on its queue has ended.
class used_there final : public Releasable {
 public:
  explicit used_there(Queue& on) : on_{&on} {}
  void release_now() noexcept override { ADD_FAILURE() << "nobody asked its queue"; }
  [[nodiscard]] Ref<Queue> sole_queue() noexcept override { return on_; }
  [[nodiscard]] bool is_released_on_demand() noexcept override {
    return on_->traits().is_queried_on_demand;
  }
  void release_idle() noexcept override {
    on_ = nullptr;
    gone_.store(true);
  }
  [[nodiscard]] bool gone() const noexcept { return gone_.load(); }

 private:
  Ref<Queue> on_;
  std::atomic<bool> gone_{false};
};

// Blocks the deferred release thread until it is opened.
class gate final : public Releasable {
 public:
  void release_now() noexcept override {
    is_entered_.store(true);
    is_open_.wait(false);
  }
  void open() noexcept {
    is_open_.store(true);
    is_open_.notify_all();
  }
  [[nodiscard]] bool is_entered() const noexcept { return is_entered_.load(); }

 private:
  std::atomic<bool> is_entered_{false};
  std::atomic<bool> is_open_{false};
};

template <class Condition>
bool comes_true(Condition&& condition) {
  for (int each = 0; each < 10'000 && !condition(); ++each) {
    std::this_thread::sleep_for(1ms);
  }
  return condition();
}

TEST(deferred_release_concurrent, a_retried_release_succeeds_while_others_keep_arriving) {
  // Static, because the deferred release still refers to them if the test fails.
  static std::atomic<bool> enough{false};
  static NeverDestroyed<busy> always{enough};
  static NeverDestroyed<stubborn> late;
  defer_release(*always);
  retry_release(*late);
  EXPECT_TRUE(comes_true([] { return (*late).gone(); }));
  enough.store(true);
  EXPECT_TRUE(comes_true([] { return (*always).ended(); }));
}

TEST(deferred_release_concurrent, a_queue_is_queried_once_for_all_releases_that_wait_for_it) {
  const auto host = *find_device("host");
  const auto home = *host->platform().default_context();
  for (const bool can_tell : {true, false}) {
    const auto one = make_ref<captured_queue>(*home, *host);
    const auto other = make_ref<captured_queue>(*home, *host);
    if (can_tell) {
      one->end_capture();
      other->end_capture();
    }
    // Static, because the deferred release still refers to it if the test fails.
    static NeverDestroyed<std::vector<std::unique_ptr<gate>>> gates;
    gate& held = *(*gates).emplace_back(std::make_unique<gate>());
    defer_release(held);
    ASSERT_TRUE(comes_true([&] { return held.is_entered(); }));
    std::vector<std::unique_ptr<used_there>> all;
    for (int each = 0; each < 1000; ++each) {
      all.push_back(std::make_unique<used_there>(each % 10 == 0 ? *other : *one));
      defer_release(*all.back());
    }
    held.open();
    const auto all_gone = [&] {
      return std::ranges::all_of(all, [](const auto& each) { return each->gone(); });
    };
    if (!can_tell) {
      EXPECT_TRUE(comes_true([&] { return one->asked() > 2 && other->asked() > 2; }));
      EXPECT_FALSE(std::ranges::any_of(all, [](const auto& each) { return each->gone(); }));
      one->end_capture();
      other->end_capture();
    }
    ASSERT_TRUE(comes_true(all_gone));
    EXPECT_TRUE(!can_tell || (one->asked() == 1 && other->asked() == 1));
    EXPECT_TRUE(comes_true([&] { return one->unique() && other->unique(); }));
  }
}

// Intel's OpenCL runtime for CPUs requires this of out-of-order queues.
TEST(deferred_release_concurrent, a_queue_is_queried_on_demand_while_a_thread_is_in_a_call) {
  const auto host = *find_device("host");
  const auto home = *host->platform().default_context();
  using demand = void (*)();
  constexpr demand by_asking = [] { static_cast<void>(release_on_demand()); };
  constexpr demand by_calling = [] { on_library_call(); };
  constexpr demand by_waiting = [] {
    static_cast<void>(wait_for_release(release_count(), std::nullopt));
  };
  for (const auto demands : {by_asking, by_calling, by_waiting}) {
    SCOPED_TRACE(demands == by_asking    ? "by asking"
                 : demands == by_calling ? "by calling"
                                         : "by waiting");
    const auto on = make_ref<captured_queue>(*home, *host, true);
    std::vector<std::unique_ptr<used_there>> all;
    for (int each = 0; each < 3; ++each) {
      defer_release(*all.emplace_back(std::make_unique<used_there>(*on)));
    }
    std::this_thread::sleep_for(50ms);
    EXPECT_EQ(on->asked(), 0);
    EXPECT_TRUE(comes_true([&] {
      demands();
      return on->asked() != 0;
    }));
    // The queue cannot report its work yet, and is queried again on demand only.
    std::this_thread::sleep_for(50ms);
    const auto asked = on->asked();
    std::this_thread::sleep_for(50ms);
    EXPECT_EQ(on->asked(), asked);
    on->end_capture();
    const auto all_gone = [&] {
      return std::ranges::all_of(all, [](const auto& each) { return each->gone(); });
    };
    ASSERT_TRUE(comes_true([&] {
      demands();
      return all_gone();
    }));
    EXPECT_TRUE(comes_true([&] { return on->unique(); }));
  }
}

TEST(deferred_release_concurrent, a_release_on_demand_is_not_missed) {
  const auto host = *find_device("host");
  for (int turn = 0; turn < 1000; ++turn) {
    const auto on = make_ref<captured_queue>(**host->platform().default_context(), *host, true);
    on->end_capture();
    used_there one{*on};
    defer_release(one);
    // A call waits for 4 ms at most. A busy machine may not run the releasing thread in that time.
    ASSERT_TRUE(comes_true([&] {
      static_cast<void>(release_on_demand());
      return one.gone();
    }));
  }
}

// Once the call has returned, the program may wait for the queue.
TEST(deferred_release_concurrent, no_call_returns_while_a_queue_is_queried_for_it) {
  const auto host = *find_device("host");
  const auto home = *host->platform().default_context();
  for (int turn = 0; turn < 300; ++turn) {
    std::vector<Ref<captured_queue>> queues;
    std::vector<std::unique_ptr<used_there>> all;
    for (int each = 0; each < 4; ++each) {
      queues.push_back(make_ref<captured_queue>(*home, *host, true));
      queues.back()->end_capture();
      defer_release(*all.emplace_back(std::make_unique<used_there>(*queues.back())));
    }
    const auto asked = [&] {
      return std::ranges::count_if(queues, [](const auto& each) { return each->asked() != 0; });
    };
    const auto began = os::Clock::now();
    static_cast<void>(wait_for_release(release_count(), std::nullopt));
    const auto then = asked();
    // A call waits for 4 ms at most. A busy machine may not run the releasing thread in that time.
    const bool may_be_in_vain = os::Clock::now() - began >= 4ms;
    std::this_thread::sleep_for(1ms);
    EXPECT_TRUE(may_be_in_vain || asked() == then);
    EXPECT_TRUE(comes_true([&] {
      static_cast<void>(release_on_demand());
      return std::ranges::all_of(all, [](const auto& each) { return each->gone(); });
    }));
  }
}

// The caller may hold a lock (an interpreter's) that a function needs for which the driver waits.
TEST(deferred_release_concurrent, no_call_waits_long_for_a_queue_that_blocks_its_queries) {
  const auto host = *find_device("host");
  const auto on = make_ref<captured_queue>(**host->platform().default_context(), *host, true);
  on->end_capture();
  static NeverDestroyed<gate> held;
  defer_release(*held);
  ASSERT_TRUE(comes_true([] { return (*held).is_entered(); }));
  used_there one{*on};
  defer_release(one);
  release_on_demand();
  EXPECT_EQ(on->asked(), 0);
  (*held).open();
  ASSERT_TRUE(comes_true([&] {
    release_on_demand();
    return one.gone();
  }));
}

TEST(deferred_release_concurrent, memory_freed_on_a_captured_queue_waits_until_the_capture_ends) {
  const auto host = *find_device("host");
  const auto on = *Platform::default_queue(*host);
  const auto from = *Pool::create(on->context(), on->device(), ISTHMUS_KIND_SHARED, {});
  for (const std::size_t nbytes : {std::size_t{1000}, std::size_t{300'000}}) {
    const auto behind = make_ref<captured_queue>(on->context(), on->device());
    void* const block = *from->allocate(nbytes, 0, *on);
    ASSERT_TRUE(*allocation_at(block));
    EXPECT_TRUE(from->deallocate(block, nbytes, behind.get()));
    EXPECT_EQ(from->deallocate(block, nbytes, behind.get()).failure().code(),
              ISTHMUS_ERROR_INVALID_ARGUMENT);
    EXPECT_TRUE(comes_true([&] { return behind->asked() > 3; }));
    EXPECT_EQ(record_of(nullptr, block).state, ISTHMUS_MEMORY_WAITING);
    behind->end_capture();
    EXPECT_TRUE(comes_true([&] { return record_of(nullptr, block).state == ISTHMUS_MEMORY_FREE; }));
    EXPECT_TRUE(comes_true([&] { return behind->unique(); }));
  }
  EXPECT_TRUE(from->verify());
}

}  // namespace
}  // namespace isthmus
