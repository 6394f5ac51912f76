#include <gtest/gtest.h>

#include "core/owner.hpp"
#include "core/status.hpp"

namespace isthmus {
namespace {

result<int> half(int value) {
  if (value % 2 != 0) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "{} is odd", value);
  }
  return value / 2;
}

result<int> quarter(int value) {
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
  const result<void> fine;
  EXPECT_TRUE(fine);
  EXPECT_EQ(fine.failure().code(), ISTHMUS_OK);
}

TEST(error, is_one_pointer_and_clones) {
  static_assert(sizeof(error) == sizeof(void*));
  const auto first = fail(ISTHMUS_ERROR_CLOSED, "gone");
  EXPECT_STREQ(first.clone().message(), "gone");
  EXPECT_FALSE(error{}.clone());
}

TEST(status, every_code_has_a_name) {
  for (status code = ISTHMUS_ERROR_INTERNAL; code <= ISTHMUS_PENDING; ++code) {
    EXPECT_STRNE(status_name(code), "unknown status") << code;
  }
  EXPECT_STREQ(status_name(-1000), "unknown status");
}

TEST(owner, is_released_exactly_once) {
  int released = 0;
  const isthmus_owner_t raw{&released, [](void* count) { ++*static_cast<int*>(count); }};
  {
    owner first{raw};
    const owner second{std::move(first)};
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
  EXPECT_EQ(owner{raw}.detach().object, &released);
  EXPECT_EQ(released, 1);
}

}  // namespace
}  // namespace isthmus
