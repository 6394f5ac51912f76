// SPDX-License-Identifier: Apache-2.0
// Compiled with ISTHMUS_DEBUG=2 (tests/CMakeLists.txt).

#include <gtest/gtest.h>

#include "unit/core/expects.hpp"

static_assert(ISTHMUS_DEBUG == 2);

TEST(expects_level_2, slow_conditions_are_evaluated_too) { EXPECT_EQ(evaluations(), 2); }

TEST(expects_level_2, a_failure_prints_several_values) {
  const auto ordered = [](int low, int high) { ISTHMUS_EXPECTS_SLOW(low <= high, low, high); };
  ordered(-2, 3);
  EXPECT_DEATH(ordered(3, -2), "precondition failed: low <= high; low, high: 3 -2");
}
