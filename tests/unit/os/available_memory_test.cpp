// SPDX-License-Identifier: Apache-2.0
#include "os/available_memory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/virtual_memory.hpp"
#include "support/kernel_files.hpp"
#include "support/sizes.hpp"

namespace isthmus::os::available_memory_test {
namespace {

using support::k_mib;

using kernel = support::kernel_files;

void expect_room(const MemoryBounds& of, std::size_t bytes, const std::string& bound) {
  const auto found = of.available();
  EXPECT_EQ(found.bytes, bytes);
  EXPECT_EQ(found.bound, bound);
}

TEST(available_memory, is_the_machines_without_groups) {
  const kernel files;
  files.machine(2048);
  const MemoryBounds bounds{files.root()};
  expect_room(bounds, 2 * k_mib, "MemAvailable");
  EXPECT_EQ(bounds.limit(), SIZE_MAX);
  files.machine(1024);
  expect_room(bounds, k_mib, "MemAvailable");
}

TEST(available_memory, is_what_a_group_leaves_without_inactive_files) {
  const kernel files;
  files.in_group("/a");
  files.group("/a", "8388608", 5 * k_mib, 2 * k_mib);
  const MemoryBounds bounds{files.root()};
  expect_room(bounds, 5 * k_mib, "/groups/a");
  EXPECT_EQ(bounds.limit(), 8 * k_mib);
  files.group("/a", "8388608", 9 * k_mib, 0);
  expect_room(bounds, 0, "/groups/a");
  files.group("/a", "8388608", k_mib, 2 * k_mib);
  expect_room(bounds, 8 * k_mib, "/groups/a");
}

TEST(available_memory, is_the_least_of_all_groups_above) {
  const kernel files;
  files.in_group("/a/b/c");
  files.group("/a/b/c", "max", 5 * k_mib, 0);
  files.group("/a/b", std::to_string(64 * k_mib), 5 * k_mib, 0);
  files.group("/a", std::to_string(32 * k_mib), 30 * k_mib, 0);
  const MemoryBounds bounds{files.root()};
  expect_room(bounds, 2 * k_mib, "/groups/a");
  EXPECT_EQ(bounds.limit(), 32 * k_mib);
  files.group("/a/b/c", std::to_string(6 * k_mib), 5 * k_mib, 0);
  expect_room(bounds, k_mib, "/groups/a/b/c");
}

TEST(available_memory, is_that_of_version_1_too) {
  const kernel files;
  files.in_old_group("/job/step");
  files.old_group("/job/step", 0x7FFFFFFFFFFFF000, 5 * k_mib, 0);
  files.old_group("/job", 16 * k_mib, 12 * k_mib, 3 * k_mib);
  files.old_group("", 0x7FFFFFFFFFFFF000, 90 * k_mib, 0);
  const MemoryBounds bounds{files.root()};
  expect_room(bounds, 7 * k_mib, "/old/job");
  EXPECT_EQ(bounds.limit(), 16 * k_mib);
}

TEST(available_memory, need_not_be_exact_where_there_is_enough) {
  const kernel files;
  files.in_group("/a");
  files.group("/a", std::to_string(16 * k_mib), 10 * k_mib, 4 * k_mib);
  const MemoryBounds bounds{files.root()};
  EXPECT_EQ(bounds.available(6 * k_mib).bytes, 6 * k_mib);
  EXPECT_EQ(bounds.available(6 * k_mib + 1).bytes, 10 * k_mib);
}

TEST(available_memory, is_not_bounded_by_what_cannot_be_read) {
  const kernel files;
  files.in_group("/a/b");
  files.group("/a/b", "garbage", 10 * k_mib, 0);
  files.write("/groups/a/memory.max", 1);  // memory.current is missing
  files.write("/proc/meminfo", "MemTotal: 5 kB\n");
  const MemoryBounds bounds{files.root()};
  EXPECT_EQ(bounds.available().bytes, SIZE_MAX);
  EXPECT_EQ(bounds.resident(), 0U);
  EXPECT_EQ(bounds.swapped(), 0U);
  EXPECT_EQ(MemoryBounds{files.root() + "/nowhere"}.available().bytes, SIZE_MAX);
}

TEST(available_memory, counts_the_process) {
  const kernel files;
  files.process(3, 8);
  const MemoryBounds bounds{files.root()};
  EXPECT_EQ(bounds.resident(), 3 * page_size());
  EXPECT_EQ(bounds.swapped(), 8U * 1024);
}

TEST(available_memory, is_read_without_allocating) {
  const kernel files;
  files.in_group("/a");
  files.group("/a", std::to_string(16 * k_mib), 10 * k_mib, 4 * k_mib);
  const MemoryBounds bounds{files.root()};
  const auto before = mallinfo2().uordblks;
  const auto found = bounds.available();
  EXPECT_EQ(mallinfo2().uordblks, before);
  EXPECT_EQ(found.bytes, 10 * k_mib);
}

TEST(available_memory, keeps_no_file_open_for_other_programs) {
  const kernel files;
  files.in_group("/a");
  files.group("/a", "max", 1, 1);
  const MemoryBounds bounds{files.root()};
  int ours = 0;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const auto target = std::filesystem::read_symlink(each.path(), gone).string();
    if (target.starts_with(files.root())) {
      ++ours;
      EXPECT_TRUE(fcntl(std::stoi(each.path().filename()), F_GETFD) & FD_CLOEXEC) << target;
    }
  }
  EXPECT_EQ(ours, 6);
}

TEST(available_memory, of_this_process_is_some) {
  const auto& bounds = process_memory_bounds();
  const auto found = bounds.available();
  EXPECT_GT(found.bytes, 0U);
  EXPECT_LT(found.bytes, SIZE_MAX);
  EXPECT_STRNE(found.bound, "");
  EXPECT_GT(bounds.resident(), 0U);
  EXPECT_EQ(&bounds, &process_memory_bounds());
}

TEST(available_memory, of_a_forked_child_is_its_own) {
  const auto* const parents = &process_memory_bounds();
  const auto child = fork();
  if (child == 0) {
    const auto& own = process_memory_bounds();
    const bool good = &own != parents && own.resident() > 0 && own.available().bytes > 0;
    _exit(good && &own == &process_memory_bounds() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(&process_memory_bounds(), parents);
}

TEST(physical_memory, is_known) {
  const auto memory = physical_memory();
  EXPECT_GT(memory.available, 0U);
  EXPECT_LE(memory.available, memory.total);
}

}  // namespace
}  // namespace isthmus::os::available_memory_test
