// SPDX-License-Identifier: Apache-2.0
#pragma once
// Determines whether a sum of multiples of strides, each with a bounded factor, can equal a target.
// The question whether two arrays share a byte reduces to this problem. Thread-safe.

#include <cstdint>
#include <vector>

namespace isthmus {

struct BoundedTerm {
  std::uint64_t stride = 0;
  std::uint64_t max_count = 0;  // maximum factor of the stride
};

enum class SumAnswer { no, yes, unknown };  // unknown: the bound on the work was exceeded

// Whether multiples of the strides, each with a factor from 0 to its `max_count`, can sum to
// `target`.
[[nodiscard]] SumAnswer can_sum_to(std::vector<BoundedTerm> terms, std::uint64_t target);

}  // namespace isthmus
