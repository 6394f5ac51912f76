// SPDX-License-Identifier: Apache-2.0
#include "tracking/page_costs.hpp"

#include <algorithm>

namespace isthmus::tracking {
namespace {

using os::k_huge_page;

// A copy of 2 MiB of pinned memory to an H100. Slower devices gain more by small pages.
constexpr std::chrono::duration<double, std::micro> k_copy_by_device{38};
// A copy of 2 MiB by one core between arrays that exceed the caches, at 9 GB/s.
constexpr std::chrono::duration<double, std::micro> k_copy_by_processor{230};
// A copy of all small pages of a huge page, each by itself, in copies of the huge page.
constexpr double k_scattered_copy = 1.5;
constexpr double k_trial_share = 1.0 / 32, k_max_trial_share = 1.0 / 20;

}  // namespace

// Where the processor copies, a fault takes about as long as the copy that it may save, so all of
// the memory may be tracked by small pages.
PageCosts::PageCosts(std::chrono::nanoseconds fault, CopiedBy copied_by) noexcept
    : max_delay_{copied_by == CopiedBy::processor ? 4.0 : 0.5}, copied_by_{copied_by} {
  const auto copy = copied_by == CopiedBy::processor ? k_copy_by_processor : k_copy_by_device;
  const auto faults = static_cast<double>(k_huge_page / os::page_size()) * fault;
  dense_faults_ = std::max(faults / copy, 0.1);
}

double PageCosts::max_sparse_share() const noexcept {
  return 1 / (dense_faults_ + k_scattered_copy);
}

std::size_t PageCosts::max_small(std::size_t chunks) const noexcept {
  if (copied_by_ == CopiedBy::nothing) {
    return 0;
  }
  const auto max = max_delay_ * static_cast<double>(chunks) / dense_faults_;
  return std::min(chunks, std::max(k_free_chunks, static_cast<std::size_t>(max)));
}

double PageCosts::trials_earned(std::size_t copies) const noexcept {
  return static_cast<double>(copies) * k_trial_share / dense_faults_;
}

double PageCosts::max_trials(std::size_t copies) const noexcept {
  return std::max(1.0, static_cast<double>(copies) * k_max_trial_share / dense_faults_);
}

}  // namespace isthmus::tracking
