// SPDX-License-Identifier: Apache-2.0
// Memory that is mapped several times, mapped privately after a fork, and released.

#include "os/shared_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "core/sizes.hpp"
#include "core/undo.hpp"
#include "os/virtual_memory.hpp"

namespace isthmus::os {
namespace {

constexpr unsigned k_noexec_seal = 8;  // MFD_NOEXEC_SEAL

// Controls how memfd_create fails, and records its calls.
struct memfd_calls {
  unsigned unknown_flags = 0;  // fail with EINVAL
  int failure = 0;             // errno of all other calls
  std::vector<unsigned> flags = {};
  int last = -1;
};
memfd_calls* watched = nullptr;

int watched_memfd(const char* name, unsigned flags) noexcept {
  if (watched == nullptr) {
    return static_cast<int>(syscall(SYS_memfd_create, name, flags));
  }
  watched->flags.push_back(flags);
  if ((flags & watched->unknown_flags) != 0 || watched->failure != 0) {
    errno = (flags & watched->unknown_flags) != 0 ? EINVAL : watched->failure;
    return -1;
  }
  return watched->last = static_cast<int>(syscall(SYS_memfd_create, name, flags));
}

}  // namespace
}  // namespace isthmus::os

// Replaces memfd_create for the whole program, including the library linked into it.
extern "C" int memfd_create(const char* name, unsigned flags) noexcept {
  return isthmus::os::watched_memfd(name, flags);
}

namespace isthmus::os {
namespace {

class shared_file_test : public testing::Test {
 protected:
  const std::size_t page_ = page_size();

  // Maps the file's second and third page in the middle of four pages of addresses.
  std::byte* mapped(const SharedFile& file) {
    auto at = reserve_addresses(4 * page_, page_);
    EXPECT_TRUE(at);
    EXPECT_TRUE(file.map(advance(*at, page_), page_, 2 * page_));
    return advance(*at, page_);
  }
  void unmap(std::byte* pages) { unmap_pages(pages - page_, 4 * page_); }
};

TEST_F(shared_file_test, is_one_memory_in_all_mappings) {
  auto file = SharedFile::open(4 * page_);
  ASSERT_TRUE(file);
  auto* const one = mapped(*file);
  auto* const other = mapped(*file);
  ASSERT_TRUE(populate_shared(one, 2 * page_));
  one[page_] = std::byte{5};
  EXPECT_EQ(other[page_], std::byte{5});
  EXPECT_TRUE(file->clear(2 * page_, page_));
  EXPECT_EQ(one[page_], std::byte{0});
  EXPECT_EQ(other[page_], std::byte{0});
  unmap(one);
  unmap(other);
}

TEST_F(shared_file_test, is_a_childs_own_where_mapped_privately) {
  auto file = SharedFile::open(4 * page_);
  ASSERT_TRUE(file);
  auto* const pages = mapped(*file);
  pages[0] = std::byte{1};
  const pid_t child = fork();
  if (child == 0) {
    file->map_privately(pages, page_, 2 * page_);
    const bool is_kept = pages[0] == std::byte{1};
    pages[0] = std::byte{2};
    _exit(is_kept && pages[0] == std::byte{2} ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(pages[0], std::byte{1});
  unmap(pages);
}

TEST_F(shared_file_test, longer_than_files_may_be_is_an_error) {
  EXPECT_FALSE(SharedFile::open(SIZE_MAX));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const Undo limited{[&] { setrlimit(RLIMIT_FSIZE, &before); }};
  const rlimit little{page_, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  auto file = SharedFile::open(2 * page_);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.failure().code(), ISTHMUS_ERROR_OUT_OF_MEMORY);
}

TEST_F(shared_file_test, pages_that_are_not_mapped_are_not_faulted_in) {
  auto at = reserve_addresses(page_, page_);
  ASSERT_TRUE(at);
  auto refused = populate_shared(*at, page_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.failure().code(), ISTHMUS_ERROR_OUT_OF_MEMORY);
  unmap_pages(*at, page_);
}

class shared_file_flags : public shared_file_test {
 protected:
  void SetUp() override { watched = &calls_; }
  void TearDown() override { watched = nullptr; }

  memfd_calls calls_;
};

// With vm.memfd_noexec=2 the kernel refuses any other file; with 1 it logs a warning.
TEST_F(shared_file_flags, request_a_file_that_is_not_executable) {
  auto file = SharedFile::open(page_);
  ASSERT_TRUE(file);
  ASSERT_GE(calls_.flags.size(), 1U);
  EXPECT_EQ(calls_.flags[0], MFD_CLOEXEC | k_noexec_seal);
  constexpr int k_seal_exec = 0x20;  // F_SEAL_EXEC
  if (calls_.flags.size() == 1) {
    EXPECT_NE(fcntl(calls_.last, F_GET_SEALS) & k_seal_exec, 0);
  }
}

TEST_F(shared_file_flags, are_left_out_where_the_kernel_does_not_know_them) {
  calls_.unknown_flags = k_noexec_seal;
  auto file = SharedFile::open(4 * page_);
  ASSERT_TRUE(file);
  EXPECT_EQ(calls_.flags, (std::vector<unsigned>{MFD_CLOEXEC | k_noexec_seal, MFD_CLOEXEC}));
  unmap(mapped(*file));
}

TEST_F(shared_file_flags, stay_where_the_kernel_refuses_for_another_reason) {
  for (const int failure : {EACCES, EMFILE, ENOMEM}) {
    calls_ = {.failure = failure};
    auto file = SharedFile::open(page_);
    ASSERT_FALSE(file);
    EXPECT_EQ(file.failure().code(), ISTHMUS_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(calls_.flags, std::vector{MFD_CLOEXEC | k_noexec_seal});
  }
}

}  // namespace
}  // namespace isthmus::os
