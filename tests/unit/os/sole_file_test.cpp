// SPDX-License-Identifier: Apache-2.0
#include "os/sole_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <string>

namespace isthmus::os {
namespace {

std::string content_of(const std::string& path) {
  std::ifstream in{path};
  return {std::istreambuf_iterator<char>{in}, {}};
}

class sole_file : public testing::Test {
 protected:
  ~sole_file() override { unlink(path_.c_str()); }
  const std::string path_ = testing::TempDir() + "sole_file_" + std::to_string(getpid());
};

TEST_F(sole_file, has_one_writer_and_is_the_next_ones_then) {
  auto* first = open_exclusive(path_.c_str());
  ASSERT_NE(first, nullptr);
  std::fputs("first", first);
  std::fflush(first);
  errno = 0;
  EXPECT_EQ(open_exclusive(path_.c_str()), nullptr);
  EXPECT_EQ(errno, EWOULDBLOCK);
  EXPECT_EQ(content_of(path_), "first") << "it was emptied";
  close_exclusive(first);
  auto* second = open_exclusive(path_.c_str());
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(content_of(path_), "");
  close_exclusive(second);
}

TEST_F(sole_file, what_is_no_file_is_open_to_all) {
  auto* one = open_exclusive("/dev/null");
  auto* other = open_exclusive("/dev/null");
  EXPECT_TRUE(one != nullptr && other != nullptr);
  close_exclusive(one);
  close_exclusive(other);
  EXPECT_EQ(open_exclusive("/none/there"), nullptr);
  EXPECT_EQ(errno, ENOENT);
}

}  // namespace
}  // namespace isthmus::os
