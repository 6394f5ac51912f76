// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a sum of strides, each used a bounded number of times, can equal a target. The question
// whether two arrays have a byte in common reduces to this. Thread-safe.

#include <cstdint>
#include <vector>

namespace isthmus {

struct BoundedTerm {
  std::uint64_t stride = 0;
  std::uint64_t max_count = 0;  // multiples
};

enum class SumAnswer { no, yes, unknown };  // unknown: the bound on the work was exceeded

// Pre: the sum of all terms, each at its maximum, is less than 2^63.
[[nodiscard]] SumAnswer can_sum_to(std::vector<BoundedTerm> terms, std::uint64_t target);

}  // namespace isthmus
