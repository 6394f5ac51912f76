#pragma once
// Whether a sum of strides, each taken up to so many times, can be a given number: what two arrays
// that have a byte in common come down to.

#include <cstdint>
#include <vector>

namespace isthmus {

struct bounded_term {
  std::uint64_t stride = 0;
  std::uint64_t most = 0;  // times
};

enum class sum_answer { no, yes, unknown };  // unknown: it took more than the bound on the work

// Pre: the sum of all, each the most times, is less than 2^63.
[[nodiscard]] sum_answer can_sum_to(std::vector<bounded_term> terms, std::uint64_t wanted);

}  // namespace isthmus
