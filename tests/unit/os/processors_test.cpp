// SPDX-License-Identifier: Apache-2.0
#include "os/processors.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "support/kernel_files.hpp"

namespace isthmus::os {
namespace {

using kernel = support::kernel_files;

ProcessorSet set_of(std::initializer_list<std::size_t> members) {
  ProcessorSet made;
  for (const auto each : members) {
    made.set(each);
  }
  return made;
}

TEST(processors_in, are_those_that_the_kernel_lists) {
  EXPECT_EQ(processors_in("0\n"), set_of({0}));
  EXPECT_EQ(processors_in("0-2,5,7-8\n"), set_of({0, 1, 2, 5, 7, 8}));
  EXPECT_EQ(processors_in("1023\n"), set_of({1023}));
}

TEST(processors_in, are_none_where_the_text_is_damaged) {
  for (const char* damaged : {"", "\n", "0", "0-", "0-\n", "-1\n", "3-1\n", "0,\n", ",0\n", "0;1\n",
                              "1024\n", "0-1024\n", "99999999999999999999\n", "0 1\n", "x\n"}) {
    EXPECT_TRUE(processors_in(damaged).none()) << '"' << damaged << '"';
  }
}

TEST(processors_near, are_the_devices) {
  const kernel files;
  files.write("/sys/bus/pci/devices/0000:c1:00.0/local_cpulist", std::string{"4-5\n"});
  EXPECT_EQ(processors_near("0000:c1:00.0", files.root()), set_of({4, 5}));
  EXPECT_TRUE(processors_near("0000:c2:00.0", files.root()).none());
  EXPECT_TRUE(processors_near("", files.root()).none());
}

TEST(processor_limit, is_the_least_of_all_groups_above_rounded_up) {
  const kernel files;
  EXPECT_EQ(processor_limit(files.root()), SIZE_MAX);
  files.in_group("/a/b");
  EXPECT_EQ(processor_limit(files.root()), SIZE_MAX) << "without files";
  files.write("/groups/a/b/cpu.max", std::string{"max 100000\n"});
  EXPECT_EQ(processor_limit(files.root()), SIZE_MAX);
  files.write("/groups/a/cpu.max", std::string{"350000 100000\n"});
  EXPECT_EQ(processor_limit(files.root()), 4U);
  files.write("/groups/a/b/cpu.max", std::string{"20000 100000\n"});
  EXPECT_EQ(processor_limit(files.root()), 1U);
}

TEST(processor_limit, is_that_of_version_1_too) {
  const kernel files;
  files.write("/proc/self/cgroup", std::string{"5:memory:/x\n4:cpu,cpuacct:/job\n0::/\n"});
  files.write("/proc/self/mountinfo",
              std::string{"36 31 0:33 / /old rw - cgroup cgroup rw,cpu,cpuacct\n"});
  files.write("/old/cpu.cfs_quota_us", std::string{"-1\n"});
  files.write("/old/cpu.cfs_period_us", std::string{"100000\n"});
  EXPECT_EQ(processor_limit(files.root()), SIZE_MAX);
  files.write("/old/job/cpu.cfs_quota_us", std::string{"200000\n"});
  files.write("/old/job/cpu.cfs_period_us", std::string{"100000\n"});
  EXPECT_EQ(processor_limit(files.root()), 2U);
}

TEST(processor_limit, is_none_where_the_files_are_damaged) {
  const kernel files;
  files.in_group("/a");
  for (const char* damaged : {"", "\n", "max", "100000\n", "100000 0\n", "x y\n", "-1 100000\n"}) {
    files.write("/groups/a/cpu.max", std::string{damaged});
    EXPECT_EQ(processor_limit(files.root()), SIZE_MAX) << '"' << damaged << '"';
  }
}

TEST(bound_thread, runs_there_and_then_where_it_did_before) {
  std::thread{[] {
    const auto before = processors_of_thread();
    ASSERT_TRUE(before.any());
    ProcessorSet last;
    for (std::size_t each = 0; each < before.size(); ++each) {
      last = before[each] ? set_of({each}) : last;
    }
    {
      const BoundThread here{last};
      EXPECT_EQ(processors_of_thread(), last);
      const BoundThread nowhere{ProcessorSet{}};
      EXPECT_EQ(processors_of_thread(), last);
    }
    EXPECT_EQ(processors_of_thread(), before);
    {
      const BoundThread impossible{set_of({1023})};
      EXPECT_EQ(processors_of_thread(), before);
    }
    EXPECT_EQ(processors_of_thread(), before);
  }}.join();
}

}  // namespace
}  // namespace isthmus::os
