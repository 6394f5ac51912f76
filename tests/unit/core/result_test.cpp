// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/owner.hpp"
#include "core/status.hpp"

namespace isthmus {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "{} is odd", value);
  }
  return value / 2;
}

Result<int> quarter(int value) {
  auto first = half(value);
  ISTHMUS_TRY(first);
  return half(*first);
}

TEST(result, carries_a_value_or_an_error) {
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_EQ(quarter(6).failure().code(), ISTHMUS_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(quarter(6).failure().message(), "3 is odd");
}

TEST(result, of_nothing_is_success) {
  const Result<void> fine;
  EXPECT_TRUE(fine);
  EXPECT_EQ(fine.failure().code(), ISTHMUS_OK);
}

TEST(error, is_one_pointer_and_shared_by_its_copies) {
  static_assert(sizeof(Error) == sizeof(void*));
  static_assert(std::is_nothrow_copy_constructible_v<Error>);
  auto first = fail(ISTHMUS_ERROR_CLOSED, "gone");
  const Error second = first;
  const auto* text = first.message();
  first = {};
  EXPECT_EQ(second.message(), text);
  EXPECT_STREQ(second.message(), "gone");
  EXPECT_FALSE(Error{first});
  EXPECT_STREQ(Error(ISTHMUS_ERROR_CLOSED, {}).message(), "");
}

TEST(error, of_no_memory_is_always_there) {
  for (int turn = 0; turn < 3; ++turn) {
    const auto told = Error::no_memory();
    const Error copy = told;
    EXPECT_EQ(copy.code(), ISTHMUS_ERROR_OUT_OF_MEMORY);
    EXPECT_STRNE(copy.message(), "");
  }
}

TEST(status, every_code_has_a_name) {
  for (Status code = ISTHMUS_ERROR_DEADLOCK; code <= ISTHMUS_PENDING; ++code) {
    EXPECT_STRNE(status_name(code), "unknown status") << code;
  }
  EXPECT_STREQ(status_name(-1000), "unknown status");
}

TEST(owner, is_released_exactly_once) {
  int released = 0;
  const isthmus_owner_t raw{&released, [](void* count) { ++*static_cast<int*>(count); }};
  {
    Owner first{raw};
    const Owner second{std::move(first)};
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
  EXPECT_EQ(Owner{raw}.detach().object, &released);
  EXPECT_EQ(released, 1);
}

}  // namespace
}  // namespace isthmus
