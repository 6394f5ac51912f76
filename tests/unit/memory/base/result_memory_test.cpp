// SPDX-License-Identifier: Apache-2.0
#include "memory/base/result_memory.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "os/available_memory.hpp"

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

TEST(result_memory, is_untouched_until_the_first_copy_takes_it) {
  constexpr std::size_t k_bytes = std::size_t{24} << 20;
  auto first = allocate_result(k_bytes);
  void* const was = *first;
  EXPECT_FALSE(take_untouched_result(static_cast<std::byte*>(was) + 4096));
  EXPECT_TRUE(take_untouched_result(was));
  EXPECT_FALSE(take_untouched_result(was));
  free_result(was);
  auto second = allocate_result(k_bytes);
  ASSERT_EQ(*second, was);
  EXPECT_FALSE(take_untouched_result(was)) << "its pages are there";
  free_result(*second);
  EXPECT_FALSE(take_untouched_result(was));
}

TEST(result_memory, keeps_several_large_ones_and_not_all) {
  constexpr std::size_t k_bytes = std::size_t{1} << 30;  // address space only
  std::vector<void*> all;
  for (int each = 0; each < 4; ++each) {
    all.push_back(*allocate_result(k_bytes));
  }
  for (auto* memory : all) {
    free_result(memory);
  }
  const auto kept = cached_result_bytes();
  EXPECT_LE(kept, std::size_t{2} << 30);
  EXPECT_LE(kept, os::physical_memory().total / 8);
}

TEST(result_memory, nothing_and_too_much) {
  EXPECT_EQ(*allocate_result(0), nullptr);
  free_result(nullptr);
  EXPECT_EQ(allocate_result(std::size_t{1} << 62).failure().code(), ISTHMUS_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(allocate_result(SIZE_MAX).failure().code(), ISTHMUS_ERROR_OUT_OF_MEMORY);
}

TEST(result_memory, a_forked_child_caches_independently) {
  constexpr std::size_t k_bytes = std::size_t{8} << 20;
  auto inherited = allocate_result(k_bytes);
  const auto in_a_child = [&] {
    free_result(*inherited);
    auto first = allocate_result(k_bytes);
    std::memset(*first, 1, k_bytes);
    void* const was = *first;
    free_result(was);
    auto second = allocate_result(k_bytes);  // the freed memory was kept and is reused
    std::_Exit(*second == was ? 0 : 1);
  };
  EXPECT_EXIT(in_a_child(), testing::ExitedWithCode(0), "");
  free_result(*inherited);
}

TEST(result_memory, a_fork_finds_no_lock_held) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer has no threads in the child of a program with threads";
#endif
  std::atomic<bool> ended{false};
  std::thread other{[&] {
    while (!ended) {
      free_result(*allocate_result(std::size_t{64} << 10));
    }
  }};
  for (int each = 0; each < 60; ++each) {
    const auto child = fork();
    if (child == 0) {
      alarm(20);
      free_result(*allocate_result(std::size_t{64} << 10));
      std::_Exit(0);
    }
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0) << "it hung";
  }
  ended = true;
  other.join();
}

}  // namespace
}  // namespace isthmus
