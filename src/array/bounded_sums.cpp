// SPDX-License-Identifier: Apache-2.0
#include "array/bounded_sums.hpp"

#include <algorithm>
#include <numeric>

namespace isthmus {
namespace {

// Maximum number of multiples to try. Each attempt takes about 5 ns.
constexpr std::uint64_t k_max_work = 100'000;

// Merges terms of equal stride and sorts by stride, largest first.
void simplify(std::vector<BoundedTerm>& terms) {
  std::erase_if(terms,
                [](const BoundedTerm& each) { return each.stride == 0 || each.max_count == 0; });
  std::sort(terms.begin(), terms.end(), [](const BoundedTerm& one, const BoundedTerm& next) {
    return one.stride > next.stride;
  });
  std::vector<BoundedTerm> merged;
  merged.reserve(terms.size());
  for (const auto& each : terms) {
    if (!merged.empty() && merged.back().stride == each.stride) {
      merged.back().max_count += each.max_count;
    } else {
      merged.push_back(each);
    }
  }
  terms = std::move(merged);
}

class Search {
 public:
  explicit Search(std::vector<BoundedTerm> terms)
      : terms_{std::move(terms)}, rest_(terms_.size() + 1), divisor_(terms_.size() + 1) {
    for (std::size_t i = terms_.size(); i-- > 0;) {
      rest_[i] = rest_[i + 1] + terms_[i].stride * terms_[i].max_count;
      divisor_[i] = std::gcd(divisor_[i + 1], terms_[i].stride);
    }
  }

  // Whether multiples of the terms from index `first` on can sum to `target`.
  [[nodiscard]] SumAnswer find(std::size_t first, std::uint64_t target) noexcept {
    if (target > rest_[first] || (divisor_[first] != 0 && target % divisor_[first] != 0)) {
      return SumAnswer::no;
    }
    if (target == 0 || first + 1 >= terms_.size()) {
      return SumAnswer::yes;  // the last term's stride divides the remainder
    }
    const auto& term = terms_[first];
    const auto rest = rest_[first + 1];
    const auto min_times = target <= rest ? 0 : (target - rest + term.stride - 1) / term.stride;
    for (auto times = std::min(term.max_count, target / term.stride) + 1; times-- > min_times;) {
      if (++work_ > k_max_work) {
        return SumAnswer::unknown;
      }
      const auto found = find(first + 1, target - times * term.stride);
      if (found != SumAnswer::no) {
        return found;
      }
    }
    return SumAnswer::no;
  }

 private:
  std::vector<BoundedTerm> terms_;
  std::vector<std::uint64_t> rest_;     // maximum sums of the terms from each index on
  std::vector<std::uint64_t> divisor_;  // greatest common divisors of the strides of these terms
  std::uint64_t work_ = 0;
};

}  // namespace

SumAnswer can_sum_to(std::vector<BoundedTerm> terms, std::uint64_t target) {
  simplify(terms);
  return Search{std::move(terms)}.find(0, target);
}

}  // namespace isthmus
