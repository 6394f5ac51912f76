// SPDX-License-Identifier: Apache-2.0
// The queues that a thread keeps for its default stream: one for each device, until the thread ends.
// They may be queues of any backend, so no CUDA device is needed.

#include "backend/cuda/thread_queues.hpp"

#include <set>
#include <thread>

#include "support/thread_end.hpp"
#include "unit/backend/refusing_queue.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace isthmus::cuda_test {
namespace {

using sim_test::RefusingQueue;
using sim_test::rig;

Ref<Queue> queue_of(const rig& simulated) {
  return Ref<Queue>{make_ref<RefusingQueue>(*simulated.test_context, *simulated.test_device)};
}

// Each test runs on a thread of its own, which has no queues yet.
template <class Function>
void run_on_new_thread(const Function& function) {
  std::thread{function}.join();
}

TEST(cuda_thread_queues, keep_one_open_queue_for_each_device) {
  const rig first;
  const rig second;
  run_on_new_thread([&] {
    auto& own = **cuda::ThreadQueues::current(*first.test_device);
    EXPECT_EQ(&own, *cuda::ThreadQueues::current(*second.test_device));
    EXPECT_FALSE(own.find_open(*first.test_device));
    const auto of_first = queue_of(first);
    const auto of_second = queue_of(second);
    own.put(of_first);
    own.put(of_second);
    EXPECT_EQ(own.find_open(*first.test_device).get(), of_first.get());
    EXPECT_EQ(own.find_open(*second.test_device).get(), of_second.get());
  });
}

TEST(cuda_thread_queues, replace_a_closed_queue) {
  const rig simulated;
  run_on_new_thread([&] {
    auto& own = **cuda::ThreadQueues::current(*simulated.test_device);
    const auto closed = queue_of(simulated);
    own.put(closed);
    closed->close();
    EXPECT_FALSE(own.find_open(*simulated.test_device));
    const auto replacement = queue_of(simulated);
    own.put(replacement);
    EXPECT_EQ(own.find_open(*simulated.test_device).get(), replacement.get());
  });
}

TEST(cuda_thread_queues, number_each_thread_that_has_them) {
  const rig simulated;
  std::set<std::uint64_t> numbers;
  for (int i = 0; i < 3; ++i) {
    run_on_new_thread([&] {
      EXPECT_EQ(cuda::current_thread_id(), 0U) << "before the first request";
      const auto number = (*cuda::ThreadQueues::current(*simulated.test_device))->thread();
      EXPECT_EQ(cuda::current_thread_id(), number);
      EXPECT_NE(number, 0U);
      EXPECT_TRUE(numbers.insert(number).second) << "reused";
    });
  }
}

TEST(cuda_thread_queues, are_refused_to_a_thread_that_is_ending) {
  const rig simulated;
  bool has_ended = false;
  run_on_new_thread([&] {
    EXPECT_TRUE(cuda::ThreadQueues::current(*simulated.test_device));
    support::run_at_thread_end([&] {
      const auto late = cuda::ThreadQueues::current(*simulated.test_device);
      sim_test::expect_failure(late, ISTHMUS_ERROR_CLOSED, "this thread is ending");
      EXPECT_EQ(cuda::current_thread_id(), 0U);
      has_ended = true;
    });
  });
  EXPECT_TRUE(has_ended);
}

}  // namespace
}  // namespace isthmus::cuda_test
