// SPDX-License-Identifier: Apache-2.0
// Entry points check the pointers that they require before they call their bodies.

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "c/common.hpp"

namespace isthmus::c::entry_test {
namespace {

int calls = 0;
const auto body = []() -> Result<void> {
  ++calls;
  return {};
};

TEST(entry, calls_the_body_if_all_pointers_are_set) {
  calls = 0;
  int first = 0;
  const char* second = "";
  EXPECT_EQ(entry(ISTHMUS_NEEDS(&first, second), body), ISTHMUS_OK);
  EXPECT_EQ(driver_entry({}, body), ISTHMUS_OK);
  EXPECT_EQ(calls, 2);
}

TEST(entry, names_the_first_pointer_that_is_null) {
  calls = 0;
  int* first = nullptr;
  const char* second = "";
  void (*third)() = nullptr;
  EXPECT_EQ(entry(ISTHMUS_NEEDS(first, second, third), body), ISTHMUS_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(std::string{isthmus_error_message()}.rfind("first is NULL", 0), 0U);
  EXPECT_EQ(driver_entry(ISTHMUS_NEEDS(second, third, first), body),
            ISTHMUS_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(std::string{isthmus_error_message()}.rfind("third is NULL", 0), 0U);
  EXPECT_EQ(calls, 0);
}

TEST(entry, an_array_is_required_only_if_it_has_elements) {
  EXPECT_TRUE(check_array(nullptr, "events", 0));
  EXPECT_TRUE(check_array("", "events", 1));
  EXPECT_EQ(check_array(nullptr, "events", 1).failure().code(), ISTHMUS_ERROR_INVALID_ARGUMENT);
}

TEST(entry, a_structure_must_have_the_size_of_its_first_version) {
  struct versioned {
    std::size_t struct_size;
    int added;
  };
  versioned value{sizeof(std::size_t), 0};
  EXPECT_TRUE(check_struct_size(value, "info", sizeof(std::size_t)));
  EXPECT_NE(std::strstr(check_struct_size(value, "info").failure().message(), "info->struct_size"),
            nullptr);
}

}  // namespace
}  // namespace isthmus::c::entry_test
