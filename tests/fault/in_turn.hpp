// SPDX-License-Identifier: Apache-2.0
#pragma once
// Repeats a scenario, each time with another one of its calls failing.

#include <gtest/gtest.h>

#include "every_nth.hpp"
#include "steps.hpp"

namespace support {

struct life_outcome {
  int failures;      // steps that failed
  bool was_reached;  // whether the call that was to fail was made
};

// Precondition: `run(n)` makes the call after n others fail. Ends when that call is not reached,
// that is, when the scenario succeeds.
template <class Run>
void fail_each_in_turn(int step, int variant, Run&& run) {
  for (int n = 0; n < k_max_calls; n = next_call(n, step, variant)) {
    const life_outcome outcome = run(n);
    if (::testing::Test::HasFailure()) {
      FAIL() << "after " << n << " calls";
    }
    if (!outcome.was_reached) {
      EXPECT_EQ(outcome.failures, 0) << "nothing was to fail";
      EXPECT_GT(n, 0);
      return;
    }
  }
  FAIL() << "still failing after " << k_max_calls << " calls";
}

}  // namespace support
