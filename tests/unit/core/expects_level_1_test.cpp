// SPDX-License-Identifier: Apache-2.0
// Compiled with ISTHMUS_DEBUG=1 (tests/CMakeLists.txt).

#include <gtest/gtest.h>

#include "unit/core/expects.hpp"

static_assert(ISTHMUS_DEBUG == 1);

TEST(expects_level_1, slow_conditions_are_not_evaluated) { EXPECT_EQ(evaluations(), 1); }

TEST(expects_level_1, a_failure_prints_place_condition_and_values_and_aborts) {
  EXPECT_EQ(half(6), 3U);
  EXPECT_DEATH(static_cast<void>(half(5)),
               "core/expects\\.hpp:[0-9]+: precondition failed: number % 2 == 0; number: 5");
}
