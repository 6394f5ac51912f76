// SPDX-License-Identifier: Apache-2.0
// The names of the tracking mechanisms.

#include "tracking/mechanism.hpp"

#include <gtest/gtest.h>

namespace isthmus::tracking {
namespace {

TEST(mechanism, is_parsed_from_its_name) {
  EXPECT_EQ(*parse_mechanism(nullptr), std::nullopt);
  EXPECT_EQ(*parse_mechanism(""), std::nullopt);
  for (const auto each :
       {TrackingMechanism::pages, TrackingMechanism::bytes, TrackingMechanism::hashes}) {
    EXPECT_EQ(*parse_mechanism(mechanism_name(each)), each);
  }
  auto wrong = parse_mechanism("page");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.failure().code(), ISTHMUS_ERROR_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace isthmus::tracking
