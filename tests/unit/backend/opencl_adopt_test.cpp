// SPDX-License-Identifier: Apache-2.0
// Adopted queues and contexts, created by the test with the driver's own functions.

#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include "backend/opencl/event.hpp"
#include "backend/workarounds/delayed_release.hpp"
#include "buffer/buffer.hpp"
#include "memory/base/live_counts.hpp"
#include "support/eventually.hpp"
#include "unit/backend/opencl_fixture.hpp"

namespace isthmus::opencl_test {
namespace {

using namespace std::chrono_literals;

class opencl_adopt : public opencl_test {
 protected:
  [[nodiscard]] cl_uint references_to(cl_command_queue handle) const {
    cl_uint told = 0;
    calls().get_queue_info(handle, CL_QUEUE_REFERENCE_COUNT, sizeof told, &told, nullptr);
    return told;
  }
  [[nodiscard]] Ref<Queue> adopted(cl_command_queue handle, Owner keep = {}) const {
    auto made = test_device().platform().adopt_queue(test_device(), handle, std::move(keep));
    EXPECT_TRUE(made) << made.failure().message();
    return *std::move(made);
  }
};

TEST_P(opencl_adopt, two_handles_of_one_queue_have_one_key) {
  auto* handle = foreign_queue(0);
  const auto first = adopted(handle);
  const auto second = adopted(handle);
  calls().release_queue(handle);
  EXPECT_EQ(first->key(), second->key());
  EXPECT_NE(first->key(), test_queue().key());
  EXPECT_EQ(first->context().key(), test_context().key());
  EXPECT_EQ(*first->export_handle(), handle);
  EXPECT_FALSE(first->idle());
  const block made{test_context(), test_device(), 64};
  finish(first->copy(made.at(), numbered(64).data(), 64, {}));
}

TEST_P(opencl_adopt, the_owner_is_released_once_at_the_end) {
  int released = 0;
  auto* handle = foreign_queue(0);
  {
    const auto queue =
        adopted(handle, Owner{{&released, [](void* count) { ++*static_cast<int*>(count); }}});
    finish(queue->fence({}));
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
  calls().release_queue(handle);
}

TEST_P(opencl_adopt, an_out_of_order_queue_is_kept_in_order) {
  auto* handle = foreign_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  const auto queue = adopted(handle);
  calls().release_queue(handle);
  constexpr std::size_t k_bytes = 1 << 16;
  const block a{test_context(), test_device(), k_bytes};
  const block b{test_context(), test_device(), k_bytes};
  for (unsigned round = 0; round < 20; ++round) {
    const auto bytes = numbered(k_bytes, round);
    std::vector<std::byte> back(k_bytes);
    ASSERT_TRUE(queue->copy(a.at(), bytes.data(), k_bytes, {}));
    ASSERT_TRUE(queue->copy(b.at(), a.at(), k_bytes, {}));
    ASSERT_TRUE(queue->fill(a.at(), {}, k_bytes, {}));
    ASSERT_TRUE(queue->copy(back.data(), b.at(), k_bytes, {}));
    finish(queue->fence({}));
    ASSERT_EQ(back, bytes) << round;
  }
}

// Waits for later work on the queue, and keeps the error.
class function_that_waits final : public HostFunction {
 public:
  function_that_waits(Queue& queue, Status& code) : queue_{queue}, code_{code} {}

 protected:
  Error run(Context&) noexcept override {
    auto fence = queue_.fence({});
    code_ = fence ? (*fence)->wait(std::nullopt).failure().code() : fence.failure().code();
    const auto waited = queue_.wait(std::nullopt);
    return waited.failure().code() == code_ ? Error{} : waited.failure();
  }

 private:
  Queue& queue_;
  Status& code_;
};

TEST_P(opencl_adopt, a_function_on_an_out_of_order_queue_does_not_wait_for_itself) {
  auto* handle = foreign_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  const auto queue = adopted(handle);
  calls().release_queue(handle);
  Status code = ISTHMUS_OK;
  finish(queue->run(std::make_unique<function_that_waits>(*queue, code), {}));
  EXPECT_EQ(code, ISTHMUS_ERROR_DEADLOCK);
  finish(queue->fence({}));
}

TEST_P(opencl_adopt, an_out_of_order_queue_is_released_after_a_delay) {
  auto* handle = foreign_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  auto queue = adopted(handle);
  finish(queue->fence({}));
  queue = nullptr;
  EXPECT_GE(references_to(handle), 2U);  // PoCL keeps references of its own for a while
  EXPECT_TRUE(support::eventually([&] {
    release_expired();
    return references_to(handle) == 1;
  }));
  calls().release_queue(handle);
}

// Commands that the owner submitted before it released the queue do not concern the library: the
// holder of the last reference has to handle them.
TEST_P(opencl_adopt, an_out_of_order_queue_that_its_owner_released_ends_once_empty) {
  bool is_gone = false;
  cl_int outcome = 0;
  auto* held =
      calls().create_user_event(static_cast<cl_context>(test_context().native()), &outcome);
  auto* handle = foreign_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  auto queue =
      adopted(handle, Owner{{&is_gone, [](void* gone) { *static_cast<bool*>(gone) = true; }}});
  ASSERT_EQ(calls().enqueue_marker(handle, 1, &held, nullptr), 0);
  queue = nullptr;
  EXPECT_TRUE(is_gone);
  calls().release_queue(handle);
  const auto end = os::Clock::now() + 2500ms;
  while (os::Clock::now() < end) {
    release_expired();
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_NE(references_to(handle), 0U);
  calls().set_user_event(held, 0);
  calls().release_event(held);
  finish(test_queue().fence({}));
}

// Regression test: Intel's runtime hangs indefinitely if the last reference is released while one
// of its threads is still finishing a command that was already reported complete. This test would
// hang as well.
TEST_P(opencl_adopt, an_out_of_order_queue_may_be_released_after_its_last_event) {
  const block made{test_context(), test_device(), 1000};
  for (int round = 0; round < 1000; ++round) {
    auto* handle = foreign_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    auto queue = adopted(handle);
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(queue->fill(made.at(), {}, 100, {}));
    }
    finish(queue->fence({}));
    queue = nullptr;
    calls().release_queue(handle);
  }
}

TEST_P(opencl_adopt, a_fence_covers_what_the_owner_submitted) {
  auto* handle = foreign_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  const auto queue = adopted(handle);
  cl_int outcome = 0;
  auto* held =
      calls().create_user_event(static_cast<cl_context>(test_context().native()), &outcome);
  ASSERT_EQ(calls().enqueue_marker(handle, 1, &held, nullptr), 0);
  auto fence = queue->fence({});
  ASSERT_TRUE(fence);
  std::this_thread::sleep_for(20ms);
  EXPECT_TRUE((*fence)->pending());
  calls().set_user_event(held, 0);
  EXPECT_TRUE((*fence)->wait(os::Clock::now() + 10s));
  calls().release_event(held);
  calls().release_queue(handle);
}

TEST_P(opencl_adopt, memory_viewed_on_an_external_queue_waits_for_it) {
  auto* handle = foreign_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  const auto queue = adopted(handle);
  auto own = Queue::create(test_context(), test_device());
  ASSERT_TRUE(own);
  auto whole = Buffer::create(**own, {1000, ISTHMUS_KIND_DEVICE, 0}, nullptr);
  ASSERT_TRUE(whole);
  auto view = (*whole)->on_queue(*queue);
  ASSERT_TRUE(view);
  cl_int outcome = 0;
  auto* held =
      calls().create_user_event(static_cast<cl_context>(test_context().native()), &outcome);
  ASSERT_EQ(calls().enqueue_marker(handle, 1, &held, nullptr), 0);
  EXPECT_EQ((*whole)->wait(os::Clock::now()).failure().code(), ISTHMUS_ERROR_TIMEOUT);
  EXPECT_EQ((*view)->wait(os::Clock::now()).failure().code(), ISTHMUS_ERROR_TIMEOUT);
  const auto live = process_live_counts().total(ISTHMUS_KIND_DEVICE).count;
  auto last = *std::move(view);
  last = nullptr;  // dropping it does not end the work on its queue
  EXPECT_EQ((*whole)->wait(os::Clock::now()).failure().code(), ISTHMUS_ERROR_TIMEOUT);
  (*whole)->free();
  EXPECT_EQ(process_live_counts().total(ISTHMUS_KIND_DEVICE).count, live) << "in use there";
  calls().set_user_event(held, 0);
  EXPECT_TRUE(queue->wait(os::Clock::now() + 10s));
  calls().release_event(held);
  calls().release_queue(handle);
}

TEST_P(opencl_adopt, a_failed_host_event_does_not_break_an_out_of_order_queue) {
  auto* handle = foreign_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  const auto queue = adopted(handle);
  calls().release_queue(handle);
  const block made{test_context(), test_device(), 4096};
  const auto bytes = numbered(64);
  for (int round = 0; round < 20; ++round) {
    auto gate = make_ref<HostEvent>();
    const std::array<Ref<Event>, 1> behind_gate{gate};
    auto across = test_queue().copy(made.at(1024), bytes.data(), 64, behind_gate);
    const std::array<Ref<Event>, 1> behind_across{*across};
    auto first = queue->copy(made.at(), bytes.data(), 64, behind_gate);
    auto second = queue->copy(made.at(64), bytes.data(), 64, behind_across);
    auto third = queue->copy(made.at(128), bytes.data(), 64, {});
    ASSERT_TRUE(across && first && second && third);
    gate->finish(fail(ISTHMUS_ERROR_CALLBACK, "the worker died"));
    for (const auto& failed : {*across, *first, *second}) {
      const auto ended = failed->wait(os::Clock::now() + 10s);
      ASSERT_FALSE(ended);
      ASSERT_EQ(ended.failure().code(), ISTHMUS_ERROR_DEPENDENCY) << ended.failure().message();
    }
    ASSERT_TRUE((*third)->wait(os::Clock::now() + 10s));
  }
  EXPECT_EQ(read(*queue, made.at(128), 64), bytes);
}

TEST_P(opencl_adopt, a_queue_without_timing_reports_so) {
  auto* handle = foreign_queue(0);
  const auto queue = adopted(handle);
  calls().release_queue(handle);
  auto fence = queue->fence({});
  finish(fence);
  EXPECT_EQ((*fence)->times().failure().code(), ISTHMUS_ERROR_UNSUPPORTED);
}

TEST_P(opencl_adopt, contexts_by_handle) {
  auto made =
      test_device().platform().adopt_context(test_device(), test_context().native(), Owner{});
  ASSERT_TRUE(made) << made.failure().message();
  EXPECT_EQ((*made)->key(), test_context().key());
  EXPECT_FALSE((*made)->is_default());
  EXPECT_TRUE((*made)->has(test_device()));
  const block inside{**made, test_device(), 64};
  finish(test_queue().copy(inside.at(), numbered(64).data(), 64, {}));
}

TEST_P(opencl_adopt, null_handles_are_refused) {
  EXPECT_EQ(
      test_device().platform().adopt_context(test_device(), nullptr, Owner{}).failure().code(),
      ISTHMUS_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(test_device().platform().adopt_queue(test_device(), nullptr, Owner{}).failure().code(),
            ISTHMUS_ERROR_INVALID_ARGUMENT);
}

TEST_P(opencl_adopt, two_threads_on_an_out_of_order_queue_do_not_mix) {
  auto* handle = foreign_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  const auto queue = adopted(handle);
  calls().release_queue(handle);
  constexpr std::size_t k_bytes = 1 << 14;
  const block shared{test_context(), test_device(), k_bytes};
  const auto write = [&](int value) {
    const std::vector<std::byte> bytes(k_bytes, static_cast<std::byte>(value));
    for (int round = 0; round < 10; ++round) {
      finish(queue->copy(shared.at(), bytes.data(), k_bytes, {}));
    }
  };
  std::thread other{[&] { write(1); }};
  write(2);
  other.join();
  const auto last = read(*queue, shared.at(), k_bytes);
  EXPECT_EQ(last, std::vector<std::byte>(k_bytes, last.front()));
}

// A forked child has none of the driver's threads: releasing objects there must not call the
// driver, and calls that need it must report the reason.
TEST_P(opencl_adopt, a_forked_child_calls_no_driver) {
  const auto queue = another_queue();
  auto gate = make_ref<HostEvent>();
  const std::array<Ref<Event>, 1> after{gate};
  auto held = queue->fence(after);
  ASSERT_TRUE(held);
  const auto child = fork();
  if (child == 0) {
    const bool refused = queue->fence({}).failure().code() == ISTHMUS_ERROR_FORKED &&
                         (*held)->poll() == ISTHMUS_ERROR_FORKED &&
                         (*held)->times().failure().code() == ISTHMUS_ERROR_FORKED;
    held = Result<Ref<Event>>{completed_event()};
    gate->finish({});
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  gate->finish({});
  EXPECT_TRUE((*held)->wait(std::nullopt));
}

INSTANTIATE_TEST_SUITE_P(opencl, opencl_adopt, ::testing::Range<std::size_t>(0, 4));

}  // namespace
}  // namespace isthmus::opencl_test
