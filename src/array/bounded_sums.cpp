// SPDX-License-Identifier: Apache-2.0
#include "array/bounded_sums.hpp"

#include <algorithm>
#include <numeric>

namespace isthmus {
namespace {

// Limit on the multiples tried, at some 5 ns each.
constexpr std::uint64_t k_most_work = 100'000;

// Merges terms of equal stride and sorts by stride, largest first.
void simplify(std::vector<BoundedTerm>& terms) {
  std::erase_if(terms, [](const BoundedTerm& each) { return each.stride == 0 || each.most == 0; });
  std::sort(terms.begin(), terms.end(), [](const BoundedTerm& one, const BoundedTerm& next) {
    return one.stride > next.stride;
  });
  std::vector<BoundedTerm> kept;
  kept.reserve(terms.size());
  for (const auto& each : terms) {
    if (!kept.empty() && kept.back().stride == each.stride) {
      kept.back().most += each.most;
    } else {
      kept.push_back(each);
    }
  }
  terms = std::move(kept);
}

class Search {
 public:
  explicit Search(std::vector<BoundedTerm> terms)
      : terms_{std::move(terms)}, rest_(terms_.size() + 1), divisor_(terms_.size() + 1) {
    for (std::size_t i = terms_.size(); i-- > 0;) {
      rest_[i] = rest_[i + 1] + terms_[i].stride * terms_[i].most;
      divisor_[i] = std::gcd(divisor_[i + 1], terms_[i].stride);
    }
  }

  // Searches the terms from index `first`.
  [[nodiscard]] SumAnswer find(std::size_t first, std::uint64_t wanted) noexcept {
    if (wanted > rest_[first] || (divisor_[first] != 0 && wanted % divisor_[first] != 0)) {
      return SumAnswer::no;
    }
    if (wanted == 0 || first + 1 >= terms_.size()) {
      return SumAnswer::yes;  // the last term's stride divides the remainder
    }
    const auto& term = terms_[first];
    const auto left = rest_[first + 1];
    const auto least = wanted <= left ? 0 : (wanted - left + term.stride - 1) / term.stride;
    for (auto times = std::min(term.most, wanted / term.stride) + 1; times-- > least;) {
      if (++work_ > k_most_work) {
        return SumAnswer::unknown;
      }
      const auto found = find(first + 1, wanted - times * term.stride);
      if (found != SumAnswer::no) {
        return found;
      }
    }
    return SumAnswer::no;
  }

 private:
  std::vector<BoundedTerm> terms_;
  std::vector<std::uint64_t> rest_;     // sums of the terms from that index on
  std::vector<std::uint64_t> divisor_;  // greatest common divisors of their strides
  std::uint64_t work_ = 0;
};

}  // namespace

SumAnswer can_sum_to(std::vector<BoundedTerm> terms, std::uint64_t wanted) {
  simplify(terms);
  return Search{std::move(terms)}.find(0, wanted);
}

}  // namespace isthmus
