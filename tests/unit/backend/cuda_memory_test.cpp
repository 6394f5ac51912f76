// SPDX-License-Identifier: Apache-2.0
// Memory of a CUDA device, and the calling thread's current context.

#include <algorithm>
#include <thread>

#include "core/sizes.hpp"
#include "unit/backend/cuda_fixture.hpp"

namespace isthmus::cuda_test {
namespace {

TEST_F(cuda_gpu, leaves_the_callers_current_context_as_it_is) {
  const auto extra = more_driver_calls();
  cuda::CUcontext theirs = nullptr;
  ASSERT_EQ(extra.create_context(&theirs, 0, test_device().index()), 0U);
  for (auto* current : {static_cast<cuda::CUcontext>(nullptr), theirs, primary()}) {
    std::thread{[&] {
      ASSERT_EQ(calls().set_current(current), 0U);
      const block memory{test_context(), test_device(), 4096};
      const auto data = numbered(4096);
      finish(test_queue().copy(memory.at(), data.data(), 4096, {}));
      EXPECT_EQ(read(test_queue(), memory.at(), 4096), data);
      EXPECT_EQ(test_context().query(memory.at(5)).base, memory.at());
      EXPECT_TRUE(test_device().memory());
      cuda::CUcontext now = nullptr;
      EXPECT_EQ(calls().get_current(&now), 0U);
      EXPECT_EQ(now, current);
    }}.join();
  }
  EXPECT_EQ(extra.destroy_context(theirs), 0U);
}

TEST_F(cuda_test, recognizes_only_its_own_pointers) {
  for (const auto kind : {ISTHMUS_KIND_DEVICE, ISTHMUS_KIND_SHARED, ISTHMUS_KIND_HOST}) {
    const block memory{test_context(), test_device(), 10000, kind};
    const auto told = test_context().query(memory.at(9999));
    EXPECT_EQ(told.kind, kind);
    EXPECT_EQ(told.base, memory.at());
    EXPECT_GE(told.nbytes, 10000U);
    EXPECT_EQ(told.device, kind == ISTHMUS_KIND_HOST ? nullptr : &test_device());
  }
  const int on_the_stack = 0;
  EXPECT_EQ(test_context().query(&on_the_stack).kind, ISTHMUS_KIND_UNKNOWN);
  EXPECT_EQ(test_context().query(nullptr).kind, ISTHMUS_KIND_UNKNOWN);
}

TEST_F(cuda_test, honours_every_alignment_that_it_offers) {
  for (const auto kind : {ISTHMUS_KIND_DEVICE, ISTHMUS_KIND_SHARED, ISTHMUS_KIND_HOST}) {
    for (std::size_t alignment = 1; alignment <= test_device().properties().max_alignment;
         alignment *= 8) {
      const block one{test_context(), test_device(), 100, kind, alignment};
      const block other{test_context(), test_device(), 100, kind, alignment};
      EXPECT_EQ(address(one.at()) % alignment, 0U);
      EXPECT_EQ(address(other.at()) % alignment, 0U);
    }
  }
}

TEST_F(cuda_test, refuses_shared_memory_that_does_not_fit) {
  const auto free_bytes = test_device().memory()->free_bytes;
  const auto refused =
      test_context().allocate(test_device(), {ISTHMUS_KIND_SHARED, free_bytes + 1, 0});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.failure().code(), ISTHMUS_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(mentions(refused.failure(), "can hang the device")) << refused.failure().message();
  // Allocated memory that was not touched yet counts too.
  const auto large = free_bytes / 2 + (free_bytes / 8);
  const block first{test_context(), test_device(), large, ISTHMUS_KIND_SHARED};
  EXPECT_EQ(
      test_context().allocate(test_device(), {ISTHMUS_KIND_SHARED, large, 0}).failure().code(),
      ISTHMUS_ERROR_OUT_OF_MEMORY);
}

TEST_F(cuda_test, does_not_count_shared_memory_after_it_is_freed) {
  for (int round = 0; round < 3; ++round) {
    const auto most = test_device().memory()->free_bytes / 2;
    const block aligned{test_context(), test_device(), 100, ISTHMUS_KIND_SHARED,
                        test_device().properties().max_alignment};
    const block large{test_context(), test_device(), most, ISTHMUS_KIND_SHARED};
  }
}

TEST_F(cuda_test, reports_the_free_memory_where_there_is_too_little) {
  const auto all = test_device().properties().memory_bytes;
  const auto refused = test_context().allocate(test_device(), {ISTHMUS_KIND_DEVICE, all, 0});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.failure().code(), ISTHMUS_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(mentions(refused.failure(), "CUDA_ERROR_OUT_OF_MEMORY (2); it has "))
      << refused.failure().message();
}

}  // namespace
}  // namespace isthmus::cuda_test
