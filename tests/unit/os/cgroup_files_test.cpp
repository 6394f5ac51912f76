// SPDX-License-Identifier: Apache-2.0
#include "os/cgroup_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace isthmus::os {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(number, must_begin_the_text_and_precede_white_space) {
  EXPECT_EQ(number_in("0\n"), 0U);
  EXPECT_EQ(number_in("18446744073709551615\n"), UINT64_MAX);
  EXPECT_EQ(number_in("12 34"), 12U);
  for (const char* damaged :
       {"", "\n", "max\n", "-1\n", " 1\n", "12", "12x\n", "0x10\n", "18446744073709551616\n"}) {
    EXPECT_FALSE(number_in(damaged)) << '"' << damaged << '"';
  }
}

TEST(number_after_a_key, is_found_on_its_own_line) {
  constexpr auto statistics =
      "active_file 1\ninactive_file 4096\ntotal_inactive_file 8192\nshmem 7\n";
  EXPECT_EQ(number_after(statistics, "inactive_file"), 4096U);
  EXPECT_EQ(number_after(statistics, "total_inactive_file"), 8192U);
  EXPECT_EQ(number_after("MemTotal:  9 kB\nMemAvailable:   6 kB\n", "MemAvailable:"), 6U);
}

TEST(number_after_a_key, is_none_where_the_text_is_damaged) {
  for (const char* damaged :
       {"", "inactive_file", "inactive_file\n", "inactive_file \n", "inactive_file 40",
        "inactive_file -1\n", "inactive_files 3\n", "inactive_file x\n", "inactive_file \n5\n"}) {
    EXPECT_FALSE(number_after(damaged, "inactive_file")) << '"' << damaged << '"';
  }
}

TEST(second_number, is_that_of_resident_pages) {
  EXPECT_EQ(second_number_in("765 407 378 5 0 123 0\n"), 407U);
  for (const char* damaged : {"", "765", "765 ", "765 4", "765 x 3\n"}) {
    EXPECT_FALSE(second_number_in(damaged)) << '"' << damaged << '"';
  }
}

TEST(group, is_that_of_its_version) {
  constexpr auto both = "9:name=memory:/no\n4:cpu,memory:/one:two\n0::/unified.slice/a b\n";
  EXPECT_EQ(cgroup_path(both, CgroupVersion::v1, "memory"), "/one:two");
  EXPECT_EQ(cgroup_path(both, CgroupVersion::v2, "memory"), "/unified.slice/a b");
  EXPECT_FALSE(cgroup_path("3:cpu:/x\n", CgroupVersion::v1, "memory"));
  EXPECT_FALSE(cgroup_path("3:cpu:/x\n", CgroupVersion::v2, "memory"));
  for (const char* damaged :
       {"", ":", "0", "0::", "0::x\n", "4:memory\n", "4:memory:\n", "::/\n"}) {
    EXPECT_FALSE(cgroup_path(damaged, CgroupVersion::v1, "memory")) << '"' << damaged << '"';
    EXPECT_FALSE(cgroup_path(damaged, CgroupVersion::v2, "memory")) << '"' << damaged << '"';
  }
}

constexpr auto k_two = "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
constexpr auto k_one =
    "35 31 0:32 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
    "36 31 0:33 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

TEST(folders, go_from_the_processs_group_to_the_root) {
  EXPECT_THAT(
      cgroup_directories(k_two, "/a.slice/b.scope", CgroupVersion::v2, "memory"),
      ElementsAre("/sys/fs/cgroup/a.slice/b.scope", "/sys/fs/cgroup/a.slice", "/sys/fs/cgroup"));
  EXPECT_THAT(cgroup_directories(k_one, "/job", CgroupVersion::v1, "memory"),
              ElementsAre("/sys/fs/cgroup/memory/job", "/sys/fs/cgroup/memory"));
  EXPECT_THAT(cgroup_directories(k_two, "/", CgroupVersion::v2, "memory"),
              ElementsAre("/sys/fs/cgroup"));
}

TEST(folders, begin_below_what_a_container_is_shown) {
  constexpr auto shown =
      "36 31 0:33 /docker/1f /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
  EXPECT_THAT(cgroup_directories(shown, "/docker/1f", CgroupVersion::v1, "memory"),
              ElementsAre("/sys/fs/cgroup/memory"));
  EXPECT_THAT(cgroup_directories(shown, "/docker/1f/job", CgroupVersion::v1, "memory"),
              ElementsAre("/sys/fs/cgroup/memory/job", "/sys/fs/cgroup/memory"));
  EXPECT_THAT(cgroup_directories(shown, "/docker/1fe", CgroupVersion::v1, "memory"), IsEmpty());
  EXPECT_THAT(cgroup_directories(shown, "/", CgroupVersion::v1, "memory"), IsEmpty());
}

TEST(folders, are_of_the_mount_that_shows_most) {
  const std::string several = "1 1 0:1 /a /part rw - cgroup2 none rw\n" + std::string{k_two} +
                              "1 1 0:1 /a/b /less rw - cgroup2 none rw\n";
  EXPECT_THAT(cgroup_directories(several, "/a/b", CgroupVersion::v2, "memory"),
              ElementsAre("/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"));
}

TEST(folders, may_have_any_name_and_any_fields_before_them) {
  constexpr auto odd =
      "1 1 0:1 / /my\\040groups\\134x rw master:1 propagate_from:2 - cgroup2 a rw\n";
  EXPECT_THAT(cgroup_directories(odd, "/j", CgroupVersion::v2, "memory"),
              ElementsAre("/my groups\\x/j", "/my groups\\x"));
  EXPECT_THAT(
      cgroup_directories("1 1 0:1 / / rw - cgroup2 a rw\n", "/j", CgroupVersion::v2, "memory"),
      ElementsAre("/j", "/"));
}

TEST(folders, are_none_for_a_group_outside_of_the_namespace) {
  EXPECT_THAT(cgroup_directories(k_two, "/../other", CgroupVersion::v2, "memory"), IsEmpty());
  EXPECT_THAT(cgroup_directories("1 1 0:1 /.. /sys/fs/cgroup rw - cgroup2 a rw\n", "/",
                                 CgroupVersion::v2, "memory"),
              IsEmpty());
}

TEST(folders, are_none_where_the_text_is_damaged) {
  for (const char* damaged :
       {"", "\n", "29 23 0:26 / /sys/fs/cgroup rw - \n", "29 23 0:26 / /sys/fs/cgroup rw cgroup2",
        "29 23 0:26 x y rw - cgroup2 a rw\n", "- cgroup2 a rw\n", "29 23 0:26 / - cgroup2 a rw\n",
        "1 1 0:1 / /sys/fs/cgroup rw - cgroup a rw,memory.x\n"}) {
    EXPECT_THAT(cgroup_directories(damaged, "/", CgroupVersion::v1, "memory"), IsEmpty())
        << damaged;
    EXPECT_THAT(cgroup_directories(damaged, "/", CgroupVersion::v2, "memory"), IsEmpty())
        << damaged;
  }
}

}  // namespace
}  // namespace isthmus::os
