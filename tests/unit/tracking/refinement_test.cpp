// SPDX-License-Identifier: Apache-2.0
// Which huge pages are tracked by small pages: those that gain by it, and never too many. A model
// of the kernel and of the copies computes what each round costs, in copies of a huge page.

#include "tracking/refinement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "os/virtual_memory.hpp"

namespace isthmus::tracking {
namespace {

constexpr std::size_t k_chunk = os::k_huge_page, k_page = 4096, k_pages = k_chunk / k_page;
constexpr std::size_t k_chunks = 128;
constexpr std::chrono::nanoseconds k_fault{1000};
constexpr double k_max = 1.05;  // of a whole copy

// The kernel, a writer and the copies of a memory of which the policy decides the page sizes.
class Model {
 public:
  Model(std::size_t chunks, CopiedBy copied_by, std::chrono::nanoseconds fault = k_fault)
      : costs_{fault, copied_by}, policy_{chunks * k_chunk, costs_}, chunks_(chunks) {
    for (auto& each : chunks_) {
      each.is_small = policy_.begins_small();
    }
  }

  // Writes the small page; its contents change unless `is_same`.
  void write(std::size_t page, bool is_same = false) {
    auto& chunk = chunks_[page / k_pages];
    const auto within = page % k_pages;
    chunk.versions[within] += is_same ? 0U : 1U;
    const auto at = page * k_page, first = page / k_pages * k_chunk;
    found_.add(chunk.is_small || chunk.has_no_huge_page ? ByteRange{at, at + k_page}
                                                        : ByteRange{first, first + k_chunk});
  }
  void write_share(double share) {
    const auto count = static_cast<std::size_t>(share * static_cast<double>(pages()));
    for (std::size_t i = 0; i < std::max<std::size_t>(count, 1); ++i) {
      write(share >= 1 ? i : random_() % pages());
    }
  }
  void write_run(std::size_t first, std::size_t count, bool is_same = false) {
    for (std::size_t i = 0; i < count; ++i) {
      write((first + i) % pages(), is_same);
    }
  }
  // Ends the round. Returns its cost relative to a copy of the whole memory.
  double scan() {
    const auto cost = scan_without_copy();
    policy_.note_copied({0, chunks_.size() * k_chunk});
    return cost;
  }
  double scan_without_copy() {
    const auto cost = copies() / static_cast<double>(chunks_.size());
    const auto& changes =
        policy_.evaluate(found_, [this](std::size_t number) { return sample(number); });
    for (const auto each : changes.split) {
      EXPECT_FALSE(chunks_[each].is_small);
      EXPECT_TRUE(found_.covers(RangeSet{{each * k_chunk, (each + 1) * k_chunk}}));
      chunks_[each].is_small = true;
    }
    for (const auto each : changes.merge) {
      EXPECT_TRUE(chunks_[each].is_small);
      EXPECT_TRUE(found_.overlaps({each * k_chunk, (each + 1) * k_chunk}));
      chunks_[each].is_small = false;
      ++merged_;
    }
    found_.clear();
    return cost;
  }
  [[nodiscard]] std::size_t pages() const { return chunks_.size() * k_pages; }
  [[nodiscard]] std::size_t small() const {
    return static_cast<std::size_t>(
        std::count_if(chunks_.begin(), chunks_.end(), [](const auto& it) { return it.is_small; }));
  }
  [[nodiscard]] bool is_small(std::size_t number) const { return chunks_[number].is_small; }
  void lose_huge_pages() {
    for (auto& each : chunks_) {
      each.has_no_huge_page = true;
    }
  }
  [[nodiscard]] Refinement& policy() { return policy_; }
  [[nodiscard]] const PageCosts& costs() const { return costs_; }
  [[nodiscard]] std::size_t merged() const { return merged_; }
  [[nodiscard]] std::size_t samples() const { return samples_; }

 private:
  struct Chunk {
    bool is_small = false;
    bool has_no_huge_page = false;
    std::array<std::uint32_t, k_pages> versions{};
    std::size_t sampled = 0;
    std::uint32_t sampled_version = 0;
  };

  bool sample(std::size_t number) {
    ++samples_;
    auto& chunk = chunks_[number];
    const bool has_changed = chunk.versions[chunk.sampled] != chunk.sampled_version;
    chunk.sampled = random_() % k_pages;
    chunk.sampled_version = chunk.versions[chunk.sampled];
    return has_changed;
  }
  // A dense run of small pages is copied as fast as a huge page, scattered ones take longer.
  [[nodiscard]] double copies() const {
    double sum = 0;
    for (std::size_t number = 0; number < chunks_.size(); ++number) {
      const ByteRange range{number * k_chunk, (number + 1) * k_chunk};
      const auto share =
          static_cast<double>(found_.common({range}).nbytes()) / static_cast<double>(k_chunk);
      const bool is_small = chunks_[number].is_small;
      sum += share * (is_small ? costs_.dense_faults() + (share < 1 ? 1.5 : 1) : 1);
    }
    return sum;
  }

  const PageCosts costs_;
  Refinement policy_;
  std::vector<Chunk> chunks_;
  std::mt19937_64 random_{3};
  RangeSet found_;
  std::size_t merged_ = 0;
  std::size_t samples_ = 0;
};

class refinement_model : public testing::Test {
 protected:
  // Returns the cost of each round after one that fills the memory.
  template <class Write>
  static std::vector<double> rounds(Model& model, std::size_t count, Write write) {
    model.write_share(1);
    model.scan();
    std::vector<double> costs;
    for (std::size_t round = 0; round < count; ++round) {
      write(round);
      costs.push_back(model.scan());
    }
    return costs;
  }
  static double mean(const std::vector<double>& costs, std::size_t first = 0) {
    double sum = 0;
    for (auto round = first; round < costs.size(); ++round) {
      sum += costs[round];
    }
    return sum / static_cast<double>(costs.size() - first);
  }
  static double max(const std::vector<double>& costs, std::size_t first = 0) {
    return *std::max_element(costs.begin() + static_cast<std::ptrdiff_t>(first), costs.end());
  }
};
class refinement_test : public refinement_model, public testing::WithParamInterface<CopiedBy> {};

TEST_P(refinement_test, no_round_after_the_third_costs_more_than_a_whole_copy) {
  for (const std::size_t chunks : {1U, 2U, 7U, 8U, 9U, 32U, 128U}) {
    for (const double share : {0.0, 0.001, 0.01, 0.1, 0.3, 1.0}) {
      Model model{chunks, GetParam()};
      const auto costs = rounds(model, 40, [&](std::size_t) { model.write_share(share); });
      EXPECT_LE(max(costs, 3), k_max) << chunks << " chunks, " << share;
    }
  }
}

TEST_F(refinement_model, sparse_writes_are_copied_page_by_page_after_the_third_round) {
  for (const std::size_t chunks : {4U, 16U, 64U, 128U}) {
    for (const double share : {0.001, 0.01}) {
      Model model{chunks, CopiedBy::processor};
      const auto costs = rounds(model, 100, [&](std::size_t) { model.write_share(share); });
      EXPECT_LE(mean(costs, 3), 0.2) << chunks << " chunks, " << share;
      EXPECT_LE(max(costs, 80), 0.15) << chunks << " chunks, " << share;
      EXPECT_EQ(model.merged(), 0U);
    }
  }
}

TEST_P(refinement_test, little_memory_begins_with_small_pages_even_if_it_is_filled_first) {
  for (std::size_t chunks = 1; chunks <= PageCosts::k_free_chunks; ++chunks) {
    Model model{chunks, GetParam()};
    const auto costs = rounds(model, 10, [&](std::size_t) { model.write(5); });
    EXPECT_LE(max(costs), 0.2);
  }
  Model dense{2, GetParam()};
  const auto costs = rounds(dense, 10, [&](std::size_t) { dense.write_share(1); });
  EXPECT_EQ(dense.small(), 0U);
  EXPECT_LE(max(costs, 1), 1);
}

// The first dense round after sparse ones: its faults are bounded, and are paid for by what was
// saved.
TEST_P(refinement_test, one_dense_round_takes_little_of_what_was_saved) {
  for (const std::size_t sparse_rounds : {1U, 5U, 40U, 400U}) {
    Model model{k_chunks, GetParam()};
    const auto costs = rounds(model, sparse_rounds, [&](std::size_t) { model.write_share(0.001); });
    const auto faults = model.costs().dense_faults() / k_chunks;  // of one chunk
    const auto saved = static_cast<double>(sparse_rounds) * (0.4 - mean(costs));
    const auto max_small = static_cast<double>(model.costs().max_small(k_chunks));
    EXPECT_LE(static_cast<double>(model.small()) * faults, std::max(max_small * faults, saved / 6));
    model.write_share(1);
    EXPECT_LE(model.scan(), 1 + static_cast<double>(k_chunks) * faults);
    model.write_share(1);
    EXPECT_LE(model.scan(), 1);
  }
}

TEST_P(refinement_test, dense_writes_cause_no_faults) {
  Model model{k_chunks, GetParam()};
  const auto costs = rounds(model, 100, [&](std::size_t) { model.write_share(1); });
  EXPECT_LE(max(costs), 1);
  EXPECT_EQ(model.small(), 0U);
  EXPECT_LE(model.samples(), 100 * k_chunks / 6);  // which are not free either
}

TEST_P(refinement_test, dense_runs_at_changing_positions_cause_no_faults) {
  Model model{k_chunks, GetParam()};
  const auto length = model.pages() / 20;
  const auto costs =
      rounds(model, 200, [&](std::size_t round) { model.write_run(round * length, length); });
  EXPECT_LE(mean(costs), 1.5 / 20);
}

// Samples then cannot distinguish dense from sparse writes.
TEST_P(refinement_test, the_same_values_written_everywhere_are_seldom_tried) {
  Model model{k_chunks, GetParam()};
  const auto costs =
      rounds(model, 300, [&](std::size_t) { model.write_run(0, model.pages(), /*is_same=*/true); });
  EXPECT_LE(max(costs, 3), std::max(k_max, 1 + model.costs().dense_faults() / k_chunks));
  EXPECT_LE(mean(costs), k_max);
}

TEST_P(refinement_test, alternate_dense_and_sparse_writes_are_soon_tracked_whole) {
  Model model{k_chunks, GetParam()};
  const auto costs =
      rounds(model, 200, [&](std::size_t round) { model.write_share(round % 2 == 0 ? 0.001 : 1); });
  EXPECT_LE(max(costs, 9), k_max);
  EXPECT_LE(mean(costs), 0.75);
}

TEST_P(refinement_test, random_writers_cost_less_than_whole_copies) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    std::mt19937_64 random{seed};
    Model model{32, GetParam()};
    const std::array shares = {0.0, 0.001, 0.01, 0.1, 0.5, 1.0};
    const auto costs =
        rounds(model, 300, [&](std::size_t) { model.write_share(shares[random() % 6]); });
    EXPECT_LE(mean(costs), k_max) << seed;
    EXPECT_LE(mean(costs, 150), 1.0) << seed;
  }
}

TEST_F(refinement_model, sparse_writes_after_dense_ones_are_detected_again) {
  for (const bool is_same : {false, true}) {
    Model model{k_chunks, CopiedBy::processor};
    rounds(model, 50, [&](std::size_t) { model.write_run(0, model.pages(), is_same); });
    std::vector<double> costs;
    for (int round = 0; round < 400; ++round) {
      model.write_share(0.001);
      costs.push_back(model.scan());
    }
    EXPECT_LE(mean(costs, is_same ? 300 : 3), 0.2) << is_same;
  }
}

TEST_F(refinement_model, a_dense_part_does_not_hide_a_sparse_one) {
  Model model{k_chunks, CopiedBy::processor};
  const auto write = [&](std::size_t) {
    model.write_run(0, model.pages() / 2);
    for (std::size_t chunk = k_chunks / 2; chunk < k_chunks; ++chunk) {
      model.write(chunk * k_pages + 9);
    }
  };
  const auto costs = rounds(model, 40, write);
  EXPECT_LE(max(costs, 20), 0.55);
  EXPECT_EQ(model.small(), k_chunks / 2);
}

TEST_F(refinement_model, sparse_ones_that_become_dense_are_tracked_whole_at_once) {
  Model model{16, CopiedBy::processor};
  rounds(model, 10, [&](std::size_t) { model.write_share(0.005); });
  ASSERT_TRUE(model.is_small(3) && model.is_small(9));
  model.write_run(3 * k_pages, 400);
  model.write_run(9 * k_pages, 64);
  model.scan();
  EXPECT_FALSE(model.is_small(3));
  EXPECT_TRUE(model.is_small(9));
  EXPECT_EQ(model.merged(), 1U);
}

TEST_P(refinement_test, nothing_is_small_without_copies) {
  for (const std::size_t chunks : {std::size_t{2}, k_chunks}) {
    Model model{chunks, CopiedBy::nothing};
    rounds(model, 20, [&](std::size_t) { model.write_share(0.001); });
    EXPECT_EQ(model.small(), 0U);
  }
}

TEST_F(refinement_model, requested_ones_become_whole_when_the_bound_is_exceeded) {
  const PageCosts costs{k_fault, CopiedBy::device};
  const auto max = costs.max_small(k_chunks);
  Refinement policy{k_chunks * k_chunk, costs};
  for (std::size_t chunk = 0; chunk < 2 * max; ++chunk) {
    policy.request_small(chunk);
    policy.request_small(chunk);
  }
  EXPECT_EQ(policy.small(), 2 * max);
  const RangeSet still{{k_chunk, k_chunk + 1}};
  const auto back = policy.release_small_except(still);
  EXPECT_EQ(back.size(), max);
  EXPECT_EQ(policy.small(), max);
  EXPECT_EQ(std::count(back.begin(), back.end(), 1U), 0);
  EXPECT_FALSE(policy.is_whole(1));
  EXPECT_TRUE(policy.release_small_except({}).empty());
}

// Those that are small anyway must remain so while this is requested.
TEST_F(refinement_model, requested_ones_remain_small_after_dense_writes) {
  Model model{4, CopiedBy::device};
  ASSERT_EQ(model.small(), 4U);
  model.write_share(1);
  model.scan();
  model.policy().request_small(2);
  model.write_share(1);
  model.scan();
  EXPECT_EQ(model.small(), 1U);
  EXPECT_TRUE(model.is_small(2));
  EXPECT_TRUE(model.policy().release_small_except({}).empty());
  model.write_share(1);
  model.scan();
  EXPECT_EQ(model.small(), 0U);
}

TEST_F(refinement_model, those_kept_small_never_become_whole) {
  Model model{k_chunks, CopiedBy::device};
  auto& policy = model.policy();
  policy.keep_small(5);
  policy.keep_small(5);
  EXPECT_EQ(policy.small(), 1U);
  EXPECT_FALSE(policy.is_whole(5));
  EXPECT_TRUE(policy.is_whole(6));
  EXPECT_FALSE(policy.is_whole(k_chunks));
  model.write_share(1);
  model.scan();
  EXPECT_FALSE(policy.is_whole(5));
  EXPECT_EQ(model.merged(), 0U);
}

// The kernel had no huge page there: splitting would gain nothing.
TEST_P(refinement_test, small_pages_of_the_kernels_own_are_left) {
  Model model{k_chunks, GetParam()};
  model.lose_huge_pages();
  for (std::size_t round = 0; round < 50; ++round) {
    for (std::size_t chunk = 0; chunk < k_chunks; ++chunk) {
      model.write_run(chunk * k_pages, round % 2 == 0 ? 1 : 500);
    }
    model.scan();
  }
  EXPECT_EQ(model.small(), 0U);
  EXPECT_EQ(model.policy().small(), k_chunks);
}

TEST_F(refinement_model, a_partial_last_chunk_is_written_densely_if_all_of_it_is) {
  const PageCosts costs{k_fault, CopiedBy::device};
  const std::size_t nbytes = k_chunk + 10 * k_page + 5;
  Refinement policy{nbytes, costs};
  ASSERT_TRUE(policy.begins_small());
  const auto unchanged = [](std::size_t) { return false; };
  const RangeSet last{{k_chunk, nbytes}}, one_page{{k_chunk + 10 * k_page, nbytes}};
  const auto evaluate = [&](const RangeSet& written) {
    auto merged = policy.evaluate(written, unchanged).merge;
    policy.note_copied({0, nbytes});
    return merged;
  };
  EXPECT_TRUE(evaluate({{0, nbytes}}).empty());  // it is filled
  EXPECT_TRUE(evaluate(one_page).empty());
  EXPECT_EQ(evaluate(last), std::vector<std::size_t>{1});
  EXPECT_TRUE(policy.is_whole(1));
  EXPECT_TRUE(evaluate(last).empty());
  EXPECT_TRUE(policy.is_whole(1));
}

// Each scan alone finds sparse writes, all scans of a round together find dense ones.
TEST_P(refinement_test, the_scans_of_a_round_count_together) {
  constexpr std::size_t k_scans = 50, k_written = k_pages / k_scans;
  for (const std::size_t chunks : {std::size_t{4}, k_chunks}) {
    Model model{chunks, GetParam()};
    for (std::size_t round = 0; round < 20; ++round) {
      for (std::size_t scan = 0; scan < k_scans; ++scan) {
        for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
          model.write_run(chunk * k_pages + scan * k_written, k_written);
        }
        scan + 1 < k_scans ? model.scan_without_copy() : model.scan();
      }
    }
    EXPECT_LE(model.small(), model.costs().max_small(chunks) / 4) << chunks;
  }
}

TEST_F(refinement_model, of_no_chunk_changes_nothing) {
  Refinement none{0, PageCosts{k_fault, CopiedBy::device}};
  EXPECT_TRUE(none.evaluate({{0, k_chunk}}, [](std::size_t) { return false; }).split.empty());
  EXPECT_FALSE(none.is_whole(0));
  EXPECT_FALSE(none.begins_small());
}

INSTANTIATE_TEST_SUITE_P(all, refinement_test,
                         testing::Values(CopiedBy::device, CopiedBy::processor));

}  // namespace
}  // namespace isthmus::tracking
