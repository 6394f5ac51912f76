// SPDX-License-Identifier: Apache-2.0
#include "tracking/page_costs.hpp"

#include <algorithm>

namespace isthmus::tracking {
namespace {

using os::k_huge_page;

using Microseconds = std::chrono::duration<double, std::micro>;

// A copy of 2 MiB of pinned memory to an H100. Slower devices gain more by small pages.
constexpr Microseconds k_copy_by_device{38};
// A copy of 2 MiB by one core between arrays that exceed the caches, at 9 GB/s.
constexpr Microseconds k_copy_by_processor{230};
// Mapping the 512 small pages of a huge page without faults.
constexpr Microseconds k_mapping{125};
// A copy of all small pages of a huge page, each by itself, in copies of the huge page.
constexpr double k_scattered_copy = 1.5;
// Longest time of the faults of one round, in copies of the memory.
constexpr double k_max_delay_by_device = 0.5, k_max_delay_by_processor = 4;
constexpr double k_max_small_share = 3.0 / 4;
constexpr double k_earned_share = 1.0 / 8;
constexpr double k_mapping_share = 1.0 / 50;
constexpr double k_trial_share = 1.0 / 32, k_max_trial_share = 1.0 / 20;

}  // namespace

PageCosts::PageCosts(std::chrono::nanoseconds fault, CopiedBy copied_by) noexcept
    : copied_by_{copied_by} {
  const auto copy = copied_by == CopiedBy::processor ? k_copy_by_processor : k_copy_by_device;
  const auto faults = static_cast<double>(k_huge_page / os::page_size()) * fault;
  dense_faults_ = std::max(faults / copy, 0.1);
  mapping_ = k_mapping / copy;
}

double PageCosts::max_sparse_share() const noexcept {
  return 1 / (dense_faults_ + k_scattered_copy);
}

std::size_t PageCosts::max_small(std::size_t chunks) const noexcept {
  if (copied_by_ == CopiedBy::nothing) {
    return 0;
  }
  const auto delay =
      copied_by_ == CopiedBy::processor ? k_max_delay_by_processor : k_max_delay_by_device;
  const auto share = std::min(k_max_small_share, delay / dense_faults_);
  const auto max = static_cast<std::size_t>(share * static_cast<double>(chunks));
  return std::min(chunks, std::max(k_free_chunks, max));
}

std::size_t PageCosts::small_earned(double copies) const noexcept {
  return static_cast<std::size_t>(copies * k_earned_share / dense_faults_);
}

std::size_t PageCosts::max_mapped(std::size_t chunks) const noexcept {
  const auto max = static_cast<double>(chunks) * k_mapping_share / mapping_;
  return std::max<std::size_t>(1, static_cast<std::size_t>(max));
}

double PageCosts::trials_earned(std::size_t copies) const noexcept {
  return static_cast<double>(copies) * k_trial_share / dense_faults_;
}

double PageCosts::max_trials(std::size_t copies) const noexcept {
  return std::max(1.0, static_cast<double>(copies) * k_max_trial_share / dense_faults_);
}

}  // namespace isthmus::tracking
