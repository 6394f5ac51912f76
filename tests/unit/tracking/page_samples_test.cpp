// SPDX-License-Identifier: Apache-2.0
// Samples reveal which share of a huge page was written.

#include "tracking/page_samples.hpp"

#include <gtest/gtest.h>

#include "os/virtual_memory.hpp"
#include "tracked_fixture.hpp"

namespace isthmus::tracking {
namespace {

TEST(page_samples_test, of_unchanged_memory_never_differ) {
  const bytes memory(2 * os::k_huge_page);
  PageSamples samples{2 * os::k_huge_page};
  for (int round = 0; round < 100; ++round) {
    EXPECT_FALSE(samples.take(0, memory.data()));
    EXPECT_FALSE(samples.take(1, memory.data()));
  }
}

TEST(page_samples_test, differ_once_if_everything_changed) {
  bytes memory(os::k_huge_page);
  PageSamples samples{1 * os::k_huge_page};
  for (int value = 1; value < 20; ++value) {
    std::fill(memory.begin(), memory.end(), static_cast<std::byte>(value));
    EXPECT_TRUE(samples.take(0, memory.data()));
    EXPECT_FALSE(samples.take(0, memory.data()));
  }
}

TEST(page_samples_test, differ_in_proportion_to_the_changed_pages) {
  const auto page = os::page_size();
  bytes memory(os::k_huge_page);
  PageSamples samples{1 * os::k_huge_page};
  constexpr int k_rounds = 2000;
  int changed = 0;
  for (int round = 0; round < k_rounds; ++round) {
    for (std::size_t at = 0; at < os::k_huge_page; at += 4 * page) {
      memory[at + page / 2] = static_cast<std::byte>(1 + round % 250);
    }
    changed += samples.take(0, memory.data()) ? 1 : 0;
  }
  EXPECT_NEAR(changed, k_rounds / 4, k_rounds / 16);
}

TEST(page_samples_test, writes_of_the_library_are_no_change) {
  bytes memory(3 * os::k_huge_page);
  PageSamples samples{3 * os::k_huge_page};
  std::fill(memory.begin(), memory.end(), std::byte{1});
  samples.refresh({0, os::k_huge_page + 5}, memory.data());
  samples.refresh({2 * os::k_huge_page + os::page_size(), 3 * os::k_huge_page + 50}, memory.data());
  EXPECT_FALSE(samples.take(0, memory.data()));
  EXPECT_FALSE(samples.take(1, memory.data()));
  EXPECT_TRUE(samples.take(2, memory.data()));
}

TEST(page_samples_test, of_a_partial_huge_page_are_taken_where_it_has_bytes) {
  const auto nbytes = os::k_huge_page + 3 * os::page_size();
  bytes memory(2 * os::k_huge_page);
  PageSamples samples{nbytes};
  for (int value = 1; value < 50; ++value) {
    std::fill_n(memory.begin(), nbytes, static_cast<std::byte>(value));
    EXPECT_TRUE(samples.take(1, memory.data()));
  }
}

TEST(page_samples_test, of_chunks_are_independent) {
  bytes memory(3 * os::k_huge_page);
  PageSamples samples{3 * os::k_huge_page};
  std::fill(memory.begin() + os::k_huge_page, memory.begin() + 2 * os::k_huge_page, std::byte{1});
  EXPECT_FALSE(samples.take(0, memory.data()));
  EXPECT_TRUE(samples.take(1, memory.data()));
  EXPECT_FALSE(samples.take(2, memory.data()));
}

}  // namespace
}  // namespace isthmus::tracking
