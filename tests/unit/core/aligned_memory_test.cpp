// SPDX-License-Identifier: Apache-2.0
#include "core/aligned_memory.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "core/sizes.hpp"

namespace isthmus {
namespace {

TEST(aligned_memory, is_aligned_and_whole_at_every_size) {
  std::vector<void*> all;
  for (std::size_t alignment = 1; alignment <= std::size_t{4} << 20; alignment *= 2) {
    for (const std::size_t nbytes : {1U, 7U, 64U, 1000U, 200'000U}) {
      auto* pointer = allocate_aligned(nbytes, alignment);
      ASSERT_NE(pointer, nullptr);
      EXPECT_EQ(address(pointer) % alignment, 0U);
      std::memset(pointer, 0xAB, nbytes);
      all.push_back(pointer);
    }
  }
  for (auto* pointer : all) {
    free_aligned(pointer);
  }
}

TEST(aligned_memory, of_more_than_there_is_is_null) {
  for (const std::size_t nbytes : {SIZE_MAX, SIZE_MAX - 64, std::size_t{1} << 62}) {
    EXPECT_EQ(allocate_aligned(nbytes, 64), nullptr);
  }
}

}  // namespace
}  // namespace isthmus
