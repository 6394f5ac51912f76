// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "core/sanitizers.hpp"
#include "core/sizes.hpp"
#include "os/futex.hpp"
#include "os/notify.hpp"
#include "os/process.hpp"
#include "os/virtual_memory.hpp"

namespace isthmus::os {
namespace {

TEST(futex, returns_at_the_deadline) {
  const std::atomic<std::uint32_t> word{7};
  const auto until = deadline_after(1'000'000);
  while (futex_wait(word, 7, until)) {
  }
  EXPECT_GE(Clock::now(), *until);
}

TEST(futex, does_not_sleep_on_another_value) {
  const std::atomic<std::uint32_t> word{8};
  EXPECT_TRUE(futex_wait(word, 7, std::nullopt));
}

TEST(deadline, for_ever_and_nearly_so) {
  EXPECT_FALSE(deadline_after(-1));
  EXPECT_FALSE(deadline_after(INT64_MAX));
  EXPECT_TRUE(deadline_after(0));
}

TEST(pages, are_aligned_and_zero) {
  for (const std::size_t alignment :
       {std::size_t{4096}, std::size_t{1} << 16, std::size_t{1} << 22}) {
    for (const std::size_t nbytes : {std::size_t{1}, std::size_t{5000}, std::size_t{3} << 20}) {
      auto pages = map_pages(nbytes, alignment);
      ASSERT_TRUE(pages);
      EXPECT_EQ(address(*pages) % alignment, 0U);
      populate_pages(*pages, nbytes);
      EXPECT_EQ(static_cast<char*>(*pages)[nbytes - 1], 0);
      unmap_pages(*pages, nbytes);
    }
  }
}

TEST(pages, refuse_what_no_machine_has) {
  EXPECT_EQ(map_pages(std::size_t{1} << 62, 4096).failure().code(), ISTHMUS_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(map_pages(SIZE_MAX, 4096).failure().code(), ISTHMUS_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(map_inaccessible(std::size_t{1} << 62, 4096).failure().code(),
            ISTHMUS_ERROR_OUT_OF_MEMORY);
}

class moved_pages : public testing::Test {
 protected:
  static constexpr std::size_t k_nbytes = std::size_t{1} << 20;
  void SetUp() override {
    auto range = reserve_addresses(2 * k_nbytes, std::size_t{1} << 16);
    ASSERT_TRUE(range);
    from_ = static_cast<char*>(*range);
    to_ = from_ + k_nbytes;
    ASSERT_TRUE(commit_pages(from_, k_nbytes));
    from_[0] = 'a';
    from_[k_nbytes - 1] = 'z';
  }
  void TearDown() override { unmap_pages(from_, 2 * k_nbytes); }
  [[nodiscard]] static bool is_mapped(void* at) {
    unsigned char resident = 0;
    return mincore(at, page_size(), &resident) == 0;
  }

  char* from_ = nullptr;
  char* to_ = nullptr;
};

TEST_F(moved_pages, take_what_is_in_them_along) {
  bool to_lost = true;
  auto moved = move_pages(from_, to_, k_nbytes, LeftPages::reserved, to_lost);
  if (!moved && moved.failure().code() == ISTHMUS_ERROR_UNSUPPORTED) {
    GTEST_SKIP() << moved.failure().message();
  }
  ASSERT_TRUE(moved) << moved.failure().message();
  EXPECT_FALSE(to_lost);
  EXPECT_EQ(to_[0], 'a');
  EXPECT_EQ(to_[k_nbytes - 1], 'z');
  EXPECT_TRUE(is_mapped(from_)) << "nobody else may come there";
  EXPECT_DEATH(static_cast<volatile char*>(from_)[0] = 1, "");
}

TEST_F(moved_pages, may_unmap_their_old_address) {
  bool to_lost = true;
  ASSERT_TRUE(move_pages(from_, to_, k_nbytes, LeftPages::unmapped, to_lost));
  EXPECT_FALSE(to_lost);
  EXPECT_EQ(to_[0], 'a');
  EXPECT_FALSE(is_mapped(from_));
}

TEST_F(moved_pages, stay_where_the_kernel_refuses) {
  if (k_address_sanitizer || k_thread_sanitizer) {
    GTEST_SKIP() << "the sanitizer itself needs memory";
  }
  const auto under_a_limit = [&] {
    const rlimit one_byte{1, RLIM_INFINITY};  // of private writable memory; 0 would mean no limit
    setrlimit(RLIMIT_DATA, &one_byte);
    bool to_lost = false;
    if (move_pages(from_, to_, k_nbytes, LeftPages::reserved, to_lost)) {
      std::_Exit(2);
    }
    const bool stayed = from_[0] == 'a' && from_[k_nbytes - 1] == 'z';
    std::_Exit(stayed && (to_lost || is_mapped(to_)) ? 0 : 1);
  };
  EXPECT_EXIT(under_a_limit(), testing::ExitedWithCode(0), "");
}

// The exit waits for the driver calls of other threads, not for the one in which it begins.
TEST(process, may_end_in_a_driver_call) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a forked child has no calls
  const auto exit_in_a_call = [] {
    watch_process();
    const DriverCall call;
    std::exit(call ? 0 : 1);
  };
  const auto begin = Clock::now();
  EXPECT_EXIT(exit_in_a_call(), testing::ExitedWithCode(0), "");
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds{4});
}

TEST(double_mapped_pages, fault_at_the_inaccessible_address_only) {
  auto pages = map_inaccessible(10'000, 65'536);
  ASSERT_TRUE(pages);
  EXPECT_EQ(address(pages->inaccessible) % 65'536, 0U);
  std::memset(pages->accessible, 1, 10'000);
  EXPECT_DEATH(static_cast<volatile char*>(pages->inaccessible)[0] = 1, "");
  unmap_inaccessible(*pages, 10'000);
}

TEST(notify, writes_one_to_a_copy_of_the_descriptor) {
  const int descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  auto own = duplicate_descriptor(descriptor);
  ASSERT_TRUE(own);
  notify_and_close(*own);
  std::uint64_t value = 0;
  EXPECT_EQ(read(descriptor, &value, sizeof value), 8);
  EXPECT_EQ(value, 1U);
  close(descriptor);
  EXPECT_EQ(duplicate_descriptor(descriptor).failure().code(), ISTHMUS_ERROR_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace isthmus::os
