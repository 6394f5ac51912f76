// SPDX-License-Identifier: Apache-2.0
// Which huge pages are tracked by small pages: those that gain by it, and never too many.

#include "tracking/refinement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "os/virtual_memory.hpp"

namespace isthmus::tracking {
namespace {

constexpr std::size_t k_chunk = os::k_huge_page, k_page = 4096;

// Simulates the kernel: which pages it reports as written.
class refinement_test : public testing::Test {
 protected:
  static constexpr std::size_t k_chunks = 480;
  static constexpr std::size_t k_dense = 17;
  static constexpr std::size_t k_most = k_chunks / (2 * k_dense);

  void write(std::size_t chunk, std::size_t pages) {
    for (std::size_t page = 0; page < pages; ++page) {
      const auto at = chunk * k_chunk + page * k_page;
      found_.add(small_[chunk] ? ByteRange{at, at + k_page}
                               : ByteRange{chunk * k_chunk, (chunk + 1) * k_chunk});
    }
  }
  // Returns the number of bytes that the copies of this round take.
  std::size_t look() {
    const auto& changes = policy_.evaluate(found_);
    for (const auto each : changes.split) {
      EXPECT_FALSE(small_[each]);
      EXPECT_TRUE(found_.overlaps({each * k_chunk, (each + 1) * k_chunk}));
      small_[each] = true;
    }
    for (const auto each : changes.merge) {
      EXPECT_TRUE(small_[each]);
      small_[each] = false;
      ++merged_;
    }
    const auto nbytes = found_.nbytes();
    found_.clear();
    return nbytes;
  }
  [[nodiscard]] std::size_t small() const {
    return static_cast<std::size_t>(std::count(small_.begin(), small_.end(), true));
  }

  Refinement policy_{k_chunks, k_dense};
  std::vector<bool> small_ = std::vector<bool>(k_chunks);
  RangeSet found_;
  std::size_t merged_ = 0;
};

TEST_F(refinement_test, sparse_ones_are_reported_by_small_pages_up_to_a_bound) {
  for (int round = 0; round < 60; ++round) {
    for (std::size_t chunk = 0; chunk < k_chunks; chunk += 2) {
      write(chunk, 2);
    }
    look();
    EXPECT_LE(small(), k_most);
    EXPECT_EQ(small(), policy_.small());
  }
  EXPECT_EQ(small(), k_most);
  EXPECT_EQ(merged_, 0U);
}

TEST(refinement_costs, the_dearer_faults_are_the_fewer_are_small) {
  for (const std::size_t dense : {1U, 8U, 26U, 1000U}) {
    Refinement policy{480, dense};
    for (std::size_t chunk = 0; chunk < 480; ++chunk) {
      policy.request_small(chunk);
    }
    const auto back = policy.release_small_except({}).size();
    EXPECT_EQ(480 - back, std::max<std::size_t>(1, 480 / (2 * dense)));
  }
}

TEST_F(refinement_test, dense_ones_are_seldom_refined_and_coarsen_again) {
  std::size_t faults = 0;
  constexpr std::size_t k_rounds = 2000;
  for (std::size_t round = 0; round < k_rounds; ++round) {
    faults += small() * 512;
    for (std::size_t chunk = 0; chunk < k_chunks / 4; ++chunk) {
      write(chunk, 512);
    }
    look();
    EXPECT_LE(small(), 1U);
  }
  EXPECT_GE(merged_, 1U);
  EXPECT_LE(merged_, 8U);
  EXPECT_LE(faults, 8U * 512);
}

TEST_F(refinement_test, sparse_ones_that_become_dense_coarsen_at_once) {
  for (int round = 0; round < 60; ++round) {
    write(3, 1);
    write(9, 1);
    for (std::size_t chunk = 20; chunk < 50; ++chunk) {
      write(chunk, 512);
    }
    look();
  }
  for (int round = 0; round < 200 && small() < 2; ++round) {
    write(3, 1);
    write(9, 1);
    look();
  }
  EXPECT_TRUE(small_[3]);
  EXPECT_TRUE(small_[9]);
  write(3, 400);
  write(9, 64);
  look();
  EXPECT_FALSE(small_[3]);
  EXPECT_TRUE(small_[9]);
}

TEST_F(refinement_test, none_are_tried_where_most_are_written) {
  for (int round = 0; round < 100; ++round) {
    for (std::size_t chunk = 0; chunk < k_chunks / 10 * 9; ++chunk) {
      write(chunk, 1);
    }
    look();
  }
  EXPECT_EQ(small(), 0U);
}

TEST_F(refinement_test, requested_ones_coarsen_when_the_bound_is_exceeded) {
  for (std::size_t chunk = 0; chunk < 2 * k_most; ++chunk) {
    policy_.request_small(chunk);
    policy_.request_small(chunk);
  }
  EXPECT_EQ(policy_.small(), 2 * k_most);
  const RangeSet still{{k_chunk, k_chunk + 1}};
  const auto back = policy_.release_small_except(still);
  EXPECT_EQ(back.size(), k_most);
  EXPECT_EQ(policy_.small(), k_most);
  EXPECT_EQ(std::count(back.begin(), back.end(), 1U), 0);
  EXPECT_FALSE(policy_.is_whole(1));
  EXPECT_TRUE(policy_.release_small_except({}).empty());
}

TEST_F(refinement_test, those_kept_small_never_coarsen) {
  policy_.keep_small(5);
  policy_.keep_small(5);
  EXPECT_EQ(policy_.small(), 1U);
  EXPECT_FALSE(policy_.is_whole(5));
  EXPECT_TRUE(policy_.is_whole(6));
  EXPECT_FALSE(policy_.is_whole(k_chunks));
  small_[5] = true;
  write(5, 512);
  look();
  EXPECT_TRUE(small_[5]);
  EXPECT_EQ(merged_, 0U);
}

// The kernel had no huge page there: splitting would gain nothing.
TEST_F(refinement_test, small_pages_of_the_kernels_own_are_left) {
  for (int round = 0; round < 100; ++round) {
    for (std::size_t chunk = 0; chunk < k_chunks; ++chunk) {
      found_.add(
          ByteRange{chunk * k_chunk, chunk * k_chunk + (round % 2 == 0 ? k_page : 500 * k_page)});
    }
    look();
  }
  EXPECT_EQ(small(), 0U);
  EXPECT_EQ(policy_.small(), k_chunks);
}

TEST_F(refinement_test, of_no_chunk_changes_nothing) {
  Refinement none{0, 1};
  EXPECT_TRUE(none.evaluate({{0, k_chunk}}).split.empty());
  EXPECT_FALSE(none.is_whole(0));
}

}  // namespace
}  // namespace isthmus::tracking
