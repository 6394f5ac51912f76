#include "memory/result_memory.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace isthmus {
namespace {

TEST(result_memory, can_be_written_at_every_size) {
  std::vector<void*> all;
  for (std::size_t nbytes = 1; nbytes <= std::size_t{16} << 20; nbytes = nbytes * 3 + 1) {
    auto memory = allocate_result(nbytes);
    ASSERT_TRUE(memory);
    std::memset(*memory, 1, nbytes);
    all.push_back(*memory);
  }
  for (auto* memory : all) {
    free_result(memory);
  }
}

TEST(result_memory, a_freed_large_block_is_the_next_of_its_size) {
  auto first = allocate_result(std::size_t{8} << 20);
  void* const was = *first;
  free_result(was);
  auto second = allocate_result((std::size_t{8} << 20) - 100);
  EXPECT_EQ(*second, was);
  free_result(*second);
}

TEST(result_memory, nothing_and_too_much) {
  EXPECT_EQ(*allocate_result(0), nullptr);
  free_result(nullptr);
  EXPECT_EQ(allocate_result(std::size_t{1} << 62).failure().code(), ISTHMUS_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(allocate_result(SIZE_MAX).failure().code(), ISTHMUS_ERROR_OUT_OF_MEMORY);
}

}  // namespace
}  // namespace isthmus
