// SPDX-License-Identifier: Apache-2.0
// Memory freed on adopted streams that are destroyed before a pool reuses the memory.

#include "memory/pool.hpp"
#include "support/sizes.hpp"
#include "unit/backend/cuda_fixture.hpp"

namespace isthmus::cuda_test {
namespace {

using support::k_mib;

TEST_F(cuda_test, borrowed_streams_are_not_asked_once_their_memory_is_behind_a_fence) {
  constexpr std::size_t k_bytes = 4 * k_mib;
  constexpr int k_turns = 50;
  const auto from =
      *Pool::create(home(), where(), ISTHMUS_KIND_DEVICE,
                    {.limit_bytes = 2 * k_bytes, .longest_wait = std::chrono::seconds{60}});
  FillPattern pattern;
  pattern.nbytes = 1;
  for (int turn = 0; turn < k_turns; ++turn) {
    auto* const stream = foreign_stream();
    {
      auto borrowed = where().platform().adopt_queue(where(), stream, Owner{});
      ASSERT_TRUE(borrowed) << borrowed.failure().message();
      auto block = from->allocate(k_bytes, 0, **borrowed);
      ASSERT_TRUE(block) << block.failure().message();
      ASSERT_TRUE((*borrowed)->fill(*block, pattern, k_bytes, {}));
      ASSERT_TRUE(from->deallocate(*block, k_bytes, borrowed->get()));
    }
    {
      const cuda::MadeCurrent here{calls(), primary()};
      EXPECT_EQ(calls().destroy_stream(stream), 0U);
    }
    auto next = from->allocate(2 * k_bytes, 0, line());
    ASSERT_TRUE(next) << next.failure().message();
    ASSERT_TRUE(from->deallocate(*next, 2 * k_bytes, &line()));
    ASSERT_TRUE(line().wait({}));
  }
}

}  // namespace
}  // namespace isthmus::cuda_test
