#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstring>

#include "core/sizes.hpp"
#include "os/futex.hpp"
#include "os/notify.hpp"
#include "os/virtual_memory.hpp"

namespace isthmus::os {
namespace {

TEST(futex, returns_at_the_deadline) {
  const std::atomic<std::uint32_t> word{7};
  const auto until = deadline_after(1'000'000);
  while (futex_wait(word, 7, until)) {
  }
  EXPECT_GE(clock::now(), *until);
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
  EXPECT_EQ(map_two_faced(std::size_t{1} << 62, 4096).failure().code(),
            ISTHMUS_ERROR_OUT_OF_MEMORY);
}

TEST(two_faced_pages, fault_on_the_hidden_face_only) {
  auto pages = map_two_faced(10'000, 65'536);
  ASSERT_TRUE(pages);
  EXPECT_EQ(address(pages->hidden) % 65'536, 0U);
  std::memset(pages->open, 1, 10'000);
  EXPECT_DEATH(static_cast<volatile char*>(pages->hidden)[0] = 1, "");
  unmap_two_faced(*pages, 10'000);
}

TEST(memory, is_known) {
  const auto memory = physical_memory();
  EXPECT_GT(memory.available, 0U);
  EXPECT_LE(memory.available, memory.total);
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
