// SPDX-License-Identifier: Apache-2.0
// What small pages cost and save, as derived from the measured times.

#include "tracking/page_costs.hpp"

#include <gtest/gtest.h>

namespace isthmus::tracking {
namespace {

using std::chrono::nanoseconds;

constexpr std::size_t k_many_chunks = 512;
constexpr nanoseconds k_fault_times[] = {nanoseconds{50}, nanoseconds{600}, nanoseconds{1900},
                                         nanoseconds{20'000}};

TEST(page_costs_test, costlier_faults_permit_fewer_small_pages) {
  for (const auto copied_by : {CopiedBy::device, CopiedBy::processor}) {
    PageCosts cheaper{nanoseconds{0}, copied_by};
    EXPECT_GT(cheaper.dense_faults(), 0);
    for (const auto fault : k_fault_times) {
      const PageCosts costs{fault, copied_by};
      EXPECT_GE(costs.dense_faults(), cheaper.dense_faults());
      EXPECT_LE(costs.max_sparse_share(), cheaper.max_sparse_share());
      EXPECT_LE(costs.max_small(k_many_chunks), cheaper.max_small(k_many_chunks));
      EXPECT_LE(costs.trials_earned(1000), cheaper.trials_earned(1000));
      cheaper = costs;
    }
  }
}

TEST(page_costs_test, sparse_writes_cost_at_most_a_copy_and_failed_trials_a_twentieth) {
  for (const auto fault : k_fault_times) {
    const PageCosts costs{fault, CopiedBy::device};
    EXPECT_LE(costs.max_sparse_share() * costs.dense_faults(), 1);
    EXPECT_LE(costs.trials_earned(k_many_chunks) * costs.dense_faults(), k_many_chunks / 20.0);
    const auto max = costs.max_trials(k_many_chunks);
    EXPECT_TRUE(max == 1 || max * costs.dense_faults() <= k_many_chunks / 20.0 + 1e-9) << max;
  }
}

TEST(page_costs_test, a_device_that_copies_fast_is_delayed_by_half_a_copy_of_the_memory) {
  for (const auto fault : k_fault_times) {
    const PageCosts costs{fault, CopiedBy::device};
    const auto small = costs.max_small(k_many_chunks);
    EXPECT_GE(small, PageCosts::k_free_chunks);
    EXPECT_LE(small, k_many_chunks);
    EXPECT_TRUE(small == PageCosts::k_free_chunks ||
                static_cast<double>(small) * costs.dense_faults() <= k_many_chunks / 2.0);
  }
}

TEST(page_costs_test, where_the_processor_copies_most_of_the_memory_may_consist_of_small_pages) {
  const PageCosts costs{nanoseconds{1000}, CopiedBy::processor};
  EXPECT_EQ(costs.max_small(k_many_chunks), k_many_chunks * 3 / 4);
}

TEST(page_costs_test, what_was_saved_pays_for_the_faults_of_one_round_eight_times) {
  for (const auto fault : k_fault_times) {
    const PageCosts costs{fault, CopiedBy::device};
    EXPECT_EQ(costs.small_earned(0), 0U);
    const auto faults = static_cast<double>(costs.small_earned(1000)) * costs.dense_faults();
    EXPECT_LE(faults, 1000.0 / 8);
  }
}

TEST(page_costs_test, mapping_in_advance_takes_little_time) {
  const auto fast = PageCosts{nanoseconds{600}, CopiedBy::device}.max_mapped(k_many_chunks);
  const auto slow = PageCosts{nanoseconds{600}, CopiedBy::processor}.max_mapped(k_many_chunks);
  EXPECT_GE(fast, 1U);
  EXPECT_LT(fast, slow);
  EXPECT_LE(slow, k_many_chunks / 25);
}

TEST(page_costs_test, little_memory_may_consist_of_small_pages) {
  const PageCosts costs{nanoseconds{5000}, CopiedBy::device};
  for (const std::size_t chunks : {std::size_t{0}, std::size_t{1}, PageCosts::k_free_chunks}) {
    EXPECT_EQ(costs.max_small(chunks), chunks);
  }
}

TEST(page_costs_test, small_pages_gain_nothing_without_copies) {
  const PageCosts costs{nanoseconds{600}, CopiedBy::nothing};
  EXPECT_EQ(costs.max_small(1), 0U);
  EXPECT_EQ(costs.max_small(k_many_chunks), 0U);
}

}  // namespace
}  // namespace isthmus::tracking
