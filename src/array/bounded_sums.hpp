// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a sum of strides, each taken a bounded number of times, can equal a given number. The
// question whether two arrays have a byte in common reduces to this. Thread-safe.

#include <cstdint>
#include <vector>

namespace isthmus {

struct bounded_term {
  std::uint64_t stride = 0;
  std::uint64_t most = 0;  // multiples
};

enum class sum_answer { no, yes, unknown };  // unknown: the bound on the work was exceeded

// Pre: the sum of all terms, each at its maximum, is less than 2^63.
[[nodiscard]] sum_answer can_sum_to(std::vector<bounded_term> terms, std::uint64_t wanted);

}  // namespace isthmus
