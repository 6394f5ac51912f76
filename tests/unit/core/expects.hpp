// SPDX-License-Identifier: Apache-2.0
#pragma once
// Functions with preconditions, compiled at the level of the file that includes them.

#include <cstddef>

#include "core/expects.hpp"

namespace {

constexpr std::size_t half(std::size_t number) {
  ISTHMUS_EXPECTS(number % 2 == 0, number);
  return number / 2;
}
static_assert(half(4) == 2);

[[maybe_unused]] bool count_call(int& calls) {
  ++calls;
  return true;
}

// The number of conditions that are evaluated.
int evaluations() {
  int calls = 0;
  ISTHMUS_EXPECTS(count_call(calls));
  ISTHMUS_EXPECTS_SLOW(count_call(calls));
  return calls;
}

}  // namespace
