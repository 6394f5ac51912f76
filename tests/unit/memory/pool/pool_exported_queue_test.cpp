// SPDX-License-Identifier: Apache-2.0
// Memory freed on a queue whose handle was exported: the queue may have external work.

#include <chrono>
#include <thread>

#include "memory/pool/pool.hpp"
#include "unit/backend/opencl_fixture.hpp"

namespace isthmus::opencl_test {
namespace {

class pool_exported_queue : public opencl_test {};
INSTANTIATE_TEST_SUITE_P(opencl, pool_exported_queue, ::testing::Range<std::size_t>(0, 4));

TEST_P(pool_exported_queue, keeps_freed_memory_until_its_fence_has_passed) {
  auto made = Pool::create(test_context(), test_device(), ISTHMUS_KIND_DEVICE, {});
  ASSERT_TRUE(made) << made.failure().message();
  auto& from = **made;
  auto on = Queue::create(test_context(), test_device());
  ASSERT_TRUE(on);
  ASSERT_NE(*(*on)->export_handle(), nullptr);
  const auto gate = make_ref<HostEvent>();
  const std::vector<Ref<Event>> after{gate};
  auto held_up = (*on)->fence(after);
  ASSERT_TRUE(held_up);
  auto block = from.allocate(1000, 0, **on);
  ASSERT_TRUE(block);
  ASSERT_TRUE(from.deallocate(*block, 1000, on->get()));
  std::vector<void*> others;
  for (int each = 0; each < 200; ++each) {
    auto other = from.allocate(1000, 0, **on);
    ASSERT_TRUE(other);
    EXPECT_NE(*other, *block) << "work on it is still to come";
    others.push_back(*other);
  }
  gate->finish({});
  for (auto* each : others) {
    ASSERT_TRUE(from.deallocate(each, 1000, on->get()));
  }
  ASSERT_TRUE((*on)->wait(std::nullopt));
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds{20};
  while (from.trim(0) == 0 && std::chrono::steady_clock::now() < patience) {
    std::this_thread::yield();  // the fences complete on a thread of the driver
  }
  EXPECT_EQ(from.usage().held_bytes, 0U);
}

}  // namespace
}  // namespace isthmus::opencl_test
