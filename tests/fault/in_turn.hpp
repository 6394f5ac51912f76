#pragma once
// A life run again and again, each time with another of its calls failing.

#include <gtest/gtest.h>

#include "every_nth.hpp"
#include "steps.hpp"

namespace support {

struct life_outcome {
  int failures;      // steps that failed
  bool was_reached;  // the call that was to fail
};

// `run(n)` has the call after n others fail. Ends at the first that is not reached: the life got
// through.
template <class Run>
void fail_each_in_turn(int step, int variant, Run&& run) {
  for (int n = 0; n < k_most_calls; n = next_call(n, step, variant)) {
    const life_outcome seen = run(n);
    if (::testing::Test::HasFailure()) {
      FAIL() << "after " << n << " calls";
    }
    if (!seen.was_reached) {
      EXPECT_EQ(seen.failures, 0) << "nothing was to fail";
      EXPECT_GT(n, 0);
      return;
    }
  }
  FAIL() << "still failing after " << k_most_calls << " calls";
}

}  // namespace support
