// SPDX-License-Identifier: Apache-2.0
#include "array/bounded_sums.hpp"

#include <algorithm>
#include <numeric>

namespace isthmus {
namespace {

// Limit on the multiples tried, at some 5 ns each.
constexpr std::uint64_t k_most_work = 100'000;

// Merges terms of equal stride and sorts by stride, largest first.
void simplify(std::vector<bounded_term>& terms) {
  std::erase_if(terms, [](const bounded_term& each) { return each.stride == 0 || each.most == 0; });
  std::sort(terms.begin(), terms.end(), [](const bounded_term& one, const bounded_term& next) {
    return one.stride > next.stride;
  });
  std::vector<bounded_term> kept;
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

class search {
 public:
  explicit search(std::vector<bounded_term> terms)
      : terms_{std::move(terms)}, rest_(terms_.size() + 1), divisor_(terms_.size() + 1) {
    for (std::size_t i = terms_.size(); i-- > 0;) {
      rest_[i] = rest_[i + 1] + terms_[i].stride * terms_[i].most;
      divisor_[i] = std::gcd(divisor_[i + 1], terms_[i].stride);
    }
  }

  // Searches the terms from index `from`.
  [[nodiscard]] sum_answer find(std::size_t from, std::uint64_t wanted) noexcept {
    if (wanted > rest_[from] || (divisor_[from] != 0 && wanted % divisor_[from] != 0)) {
      return sum_answer::no;
    }
    if (wanted == 0 || from + 1 >= terms_.size()) {
      return sum_answer::yes;  // the last term's stride divides the remainder
    }
    const auto& term = terms_[from];
    const auto left = rest_[from + 1];
    const auto least = wanted <= left ? 0 : (wanted - left + term.stride - 1) / term.stride;
    for (auto times = std::min(term.most, wanted / term.stride) + 1; times-- > least;) {
      if (++work_ > k_most_work) {
        return sum_answer::unknown;
      }
      const auto found = find(from + 1, wanted - times * term.stride);
      if (found != sum_answer::no) {
        return found;
      }
    }
    return sum_answer::no;
  }

 private:
  std::vector<bounded_term> terms_;
  std::vector<std::uint64_t> rest_;     // sums of the terms from that index on
  std::vector<std::uint64_t> divisor_;  // greatest common divisors of their strides
  std::uint64_t work_ = 0;
};

}  // namespace

sum_answer can_sum_to(std::vector<bounded_term> terms, std::uint64_t wanted) {
  simplify(terms);
  return search{std::move(terms)}.find(0, wanted);
}

}  // namespace isthmus
