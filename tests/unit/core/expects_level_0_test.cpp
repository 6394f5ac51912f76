// SPDX-License-Identifier: Apache-2.0
// Compiled with ISTHMUS_DEBUG=0 (tests/CMakeLists.txt).

#include <gtest/gtest.h>

#include "unit/core/expects.hpp"

static_assert(ISTHMUS_DEBUG == 0);

TEST(expects_level_0, nothing_is_evaluated) {
  EXPECT_EQ(evaluations(), 0);
  EXPECT_EQ(half(5), 2U);
}
