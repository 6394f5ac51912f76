// SPDX-License-Identifier: Apache-2.0
// Memory freed on adopted streams that are destroyed before a pool reuses the memory.

#include "memory/pool/pool.hpp"
#include "support/sizes.hpp"
#include "unit/backend/cuda_fixture.hpp"

namespace isthmus::cuda_test {
namespace {

using support::k_mib;

TEST_F(cuda_test, borrowed_streams_are_not_queried_once_a_fence_covers_their_memory) {
  constexpr std::size_t k_bytes = 4 * k_mib;
  constexpr int k_turns = 50;
  const auto from =
      *Pool::create(test_context(), test_device(), ISTHMUS_KIND_DEVICE,
                    {.limit_bytes = 2 * k_bytes, .max_wait = std::chrono::seconds{60}});
  FillPattern pattern;
  pattern.nbytes = 1;
  for (int turn = 0; turn < k_turns; ++turn) {
    auto* const stream = foreign_stream();
    {
      auto borrowed = test_device().platform().adopt_queue(test_device(), stream, Owner{});
      ASSERT_TRUE(borrowed) << borrowed.failure().message();
      auto block = from->allocate(k_bytes, 0, **borrowed);
      ASSERT_TRUE(block) << block.failure().message();
      ASSERT_TRUE((*borrowed)->fill(*block, pattern, k_bytes, {}));
      ASSERT_TRUE(from->deallocate(*block, k_bytes, borrowed->get()));
    }
    {
      const cuda::ContextGuard here{calls(), primary()};
      EXPECT_EQ(calls().destroy_stream(stream), 0U);
    }
    auto next = from->allocate(2 * k_bytes, 0, test_queue());
    ASSERT_TRUE(next) << next.failure().message();
    ASSERT_TRUE(from->deallocate(*next, 2 * k_bytes, &test_queue()));
    ASSERT_TRUE(test_queue().wait({}));
  }
}

}  // namespace
}  // namespace isthmus::cuda_test
