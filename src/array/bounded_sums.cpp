// SPDX-License-Identifier: Apache-2.0
#include "array/bounded_sums.hpp"

#include <algorithm>
#include <numeric>

#include "core/expects.hpp"

namespace isthmus {
namespace {

// Maximum number of multiples to try. Each try takes about 5 ns.
constexpr std::uint64_t k_max_tries = 100'000;

// Merges terms of equal stride and sorts by stride, largest first.
void simplify(std::vector<BoundedTerm>& terms) {
  std::erase_if(terms,
                [](const BoundedTerm& term) { return term.stride == 0 || term.max_count == 0; });
  std::sort(terms.begin(), terms.end(),
            [](const BoundedTerm& a, const BoundedTerm& b) { return a.stride > b.stride; });
  std::vector<BoundedTerm> merged;
  merged.reserve(terms.size());
  for (const auto& term : terms) {
    if (!merged.empty() && merged.back().stride == term.stride) {
      merged.back().max_count += term.max_count;
    } else {
      merged.push_back(term);
    }
  }
  terms = std::move(merged);
}

class Search {
 public:
  explicit Search(std::vector<BoundedTerm> terms)
      : terms_{std::move(terms)}, max_sums_(terms_.size() + 1), divisors_(terms_.size() + 1) {
    for (std::size_t i = terms_.size(); i-- > 0;) {
      max_sums_[i] = max_sums_[i + 1] + terms_[i].stride * terms_[i].max_count;
      ISTHMUS_EXPECTS(max_sums_[i] <= INT64_MAX, max_sums_[i]);  // no sum wraps
      divisors_[i] = std::gcd(divisors_[i + 1], terms_[i].stride);
    }
  }

  // Whether multiples of the terms from index `first` on can sum to `target`.
  [[nodiscard]] SumAnswer find(std::size_t first, std::uint64_t target) noexcept {
    if (target > max_sums_[first] || (divisors_[first] != 0 && target % divisors_[first] != 0)) {
      return SumAnswer::no;
    }
    if (target == 0 || first + 1 >= terms_.size()) {
      return SumAnswer::yes;  // the last term's stride divides the remainder
    }
    const auto& term = terms_[first];
    const auto max_rest = max_sums_[first + 1];
    const auto min_factor =
        target <= max_rest ? 0 : (target - max_rest + term.stride - 1) / term.stride;
    for (auto factor = std::min(term.max_count, target / term.stride) + 1; factor-- > min_factor;) {
      if (++tries_ > k_max_tries) {
        return SumAnswer::unknown;
      }
      const auto answer = find(first + 1, target - factor * term.stride);
      if (answer != SumAnswer::no) {
        return answer;
      }
    }
    return SumAnswer::no;
  }

 private:
  std::vector<BoundedTerm> terms_;
  // For the terms from each index on: the maximum sum, and the greatest common divisor of the
  // strides.
  std::vector<std::uint64_t> max_sums_;
  std::vector<std::uint64_t> divisors_;
  std::uint64_t tries_ = 0;
};

}  // namespace

SumAnswer can_sum_to(std::vector<BoundedTerm> terms, std::uint64_t target) {
  simplify(terms);
  return Search{std::move(terms)}.find(0, target);
}

}  // namespace isthmus
