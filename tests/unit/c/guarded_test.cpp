// SPDX-License-Identifier: Apache-2.0
// Entry points return every failure of their bodies as a status, and keep it as the last error of
// the calling thread.

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>
#include <thread>

#include "c/common.hpp"

namespace isthmus::c::guarded_test {
namespace {

using outcome = Result<void>;

TEST(guarded, returns_success_and_keeps_the_last_error) {
  ASSERT_EQ(set_last_error(fail(ISTHMUS_ERROR_CLOSED, "before")), ISTHMUS_ERROR_CLOSED);
  EXPECT_EQ(guarded([] { return outcome{}; }), ISTHMUS_OK);
  EXPECT_STREQ(isthmus_error_message(), "before");
}

TEST(guarded, returns_the_error_of_the_body) {
  const auto refuse = []() -> outcome { return fail(ISTHMUS_ERROR_OUT_OF_RANGE, "{} of 7", 8); };
  EXPECT_EQ(guarded(refuse), ISTHMUS_ERROR_OUT_OF_RANGE);
  EXPECT_STREQ(isthmus_error_message(), "8 of 7");
}

TEST(guarded, returns_a_lack_of_host_memory) {
  EXPECT_EQ(guarded([]() -> outcome { throw std::bad_alloc{}; }), ISTHMUS_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(last_error().is(Error::no_memory()));
}

TEST(guarded, returns_unexpected_exceptions) {
  EXPECT_EQ(guarded([]() -> outcome { throw std::runtime_error{"a surprise"}; }),
            ISTHMUS_ERROR_INTERNAL);
  EXPECT_NE(std::string{isthmus_error_message()}.find("a surprise"), std::string::npos);
  EXPECT_EQ(guarded([]() -> outcome { throw 7; }), ISTHMUS_ERROR_INTERNAL);
  EXPECT_NE(std::string{isthmus_error_message()}.find("unknown type"), std::string::npos);
}

TEST(guarded, keeps_an_error_for_each_thread) {
  set_last_error(fail(ISTHMUS_ERROR_CLOSED, "of this thread"));
  std::thread{[] {
    EXPECT_STREQ(isthmus_error_message(), "");
    set_last_error(fail(ISTHMUS_ERROR_CLOSED, "of another thread"));
    EXPECT_STREQ(isthmus_error_message(), "of another thread");
  }}.join();
  EXPECT_STREQ(isthmus_error_message(), "of this thread");
}

}  // namespace
}  // namespace isthmus::c::guarded_test
