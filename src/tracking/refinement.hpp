// SPDX-License-Identifier: Apache-2.0
#pragma once
// Decides which huge pages of a tracked memory are tracked by small pages: those that are written
// sparsely. page_costs.hpp describes what either choice costs. Not thread-safe.
//
// Memory of at most `PageCosts::k_free_chunks` huge pages begins with small pages. Larger memory
// begins with huge pages. Whether a huge page was written densely or sparsely is then estimated
// from a sample: if one of its small pages, chosen at random, still has its previous contents, the
// writes were probably sparse. A sample costs no fault, but about 1/40 of a copy to a fast device.
// If nearly all samples indicate dense writes, only some huge pages are sampled in each round.
//
// If nearly all samples indicate sparse writes, the huge pages of these samples are tracked by
// small pages from the next round on. Otherwise this requires a long row of such samples of one
// huge page. The first round in which its small pages cost more than a copy of the whole page ends
// this. From then on huge pages are split only on trial: a few at first, more after each success,
// and those that failed before only after a row of samples that doubles with each failure.
// page_costs.hpp limits the trials. So programs that alternate between dense and sparse writes, or
// write the same values again, lose little.
//
// A round of a huge page ends when it is copied. It is evaluated at the first scan after that, by
// the bytes written in that scan or, if more, in all scans of the round before: programs may scan
// many times before they copy.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/range_set.hpp"
#include "tracking/page_costs.hpp"

namespace isthmus::tracking {

// A chunk is a huge page; chunks are numbered from the beginning of the memory.
class Refinement {
 public:
  // The last chunk may lie only partly in the memory. Throws std::bad_alloc; no other function of
  // this class throws.
  Refinement(std::size_t nbytes, const PageCosts& costs);

  // Chunks that must now be split into small pages, and merged into huge pages.
  struct Changes {
    std::vector<std::size_t> split, merge;  // in no particular order
  };
  // Whether the sample of a chunk differs from its contents when it was last taken. Takes the next
  // one.
  using TakeSample = std::function<bool(std::size_t chunk)>;
  // Evaluates the ranges that a scan reported; called after each scan. Takes samples of chunks that
  // the scan reported as a whole. `take_sample` does not throw. The returned changes are valid
  // until the next call.
  // Call `note_copied` for the chunks that are copied between two scans.
  const Changes& evaluate(const RangeSet& found, const TakeSample& take_sample) noexcept;

  void note_copied(const ByteRange& range) noexcept;

  // Whether all chunks are tracked by small pages initially.
  [[nodiscard]] bool begins_small() const noexcept { return begins_small_; }
  [[nodiscard]] bool is_whole(std::size_t number) const noexcept {
    return number < chunks_.size() && chunks_[number].state == Resolution::whole;
  }
  // Tracks the chunk by small pages permanently, or as the kernel does if it cannot be split.
  void keep_small(std::size_t number) noexcept;
  void keep_all() noexcept;
  // Tracks the chunk by small pages until `release_small_except` releases it.
  void request_small(std::size_t number) noexcept;
  // Releases the chunks of `request_small` that `needed` does not overlap. Returns the chunks to
  // merge because too many are tracked by small pages. The result is valid until the next call.
  const std::vector<std::size_t>& release_small_except(const RangeSet& needed) noexcept;
  [[nodiscard]] std::size_t small() const noexcept { return small_; }

 private:
  // `initial`: by small pages since the memory exists, and not written yet. The first writes
  // usually fill the memory and say nothing about later ones.
  enum class Resolution : std::uint8_t { whole, initial, on_trial, small, requested, always_small };
  struct Chunk {
    std::uint32_t written = 0;        // bytes, in this scan
    std::uint32_t round_written = 0;  // bytes, by small pages, in the scans of this round before
    std::uint16_t sparse_scans = 0;   // latest samples in a row that indicated sparse writes
    std::uint8_t failures = 0;        // times that small pages were too expensive
    bool is_filled = false;           // a sample has changed
    bool is_copied = true;            // since the last evaluation
    bool was_copied = false;          // ever
    Resolution state = Resolution::whole;
  };

  [[nodiscard]] ByteRange range_of(std::size_t number) const noexcept;
  void count(const RangeSet& found) noexcept;
  void evaluate_chunk(std::size_t number, const TakeSample& take_sample) noexcept;
  void end_scan(Chunk& chunk) noexcept;
  void evaluate_whole(std::size_t number, bool has_changed) noexcept;
  void evaluate_small(std::size_t number) noexcept;
  void update_budgets() noexcept;
  [[nodiscard]] std::size_t capacity() const noexcept;
  [[nodiscard]] bool is_sparse() const noexcept;
  [[nodiscard]] bool is_sampled(std::size_t number) const noexcept;
  [[nodiscard]] double required_scans(const Chunk& chunk) const noexcept;
  void select_candidates() noexcept;
  void split_candidates() noexcept;

  const std::size_t nbytes_;
  std::vector<Chunk> chunks_;
  std::vector<std::size_t> touched_;     // chunks that this scan reported
  std::vector<std::size_t> candidates_;  // those of `touched_` that may be split
  std::vector<std::size_t> requested_;   // chunks of `request_small`
  Changes changes_;
  const PageCosts costs_;
  const std::size_t max_small_;
  const bool begins_small_;
  std::size_t small_ = 0;
  double saved_ = 0;  // copies of chunks that small pages have saved, less what they have cost
  std::size_t scans_ = 0;
  std::size_t copies_ = 0;  // evaluated chunks that this scan reported as a whole
  // Recent samples, and those of them that indicated dense writes.
  std::size_t samples_ = 0;
  std::size_t dense_samples_ = 0;
  bool has_failed_ = false;  // chunks are split only on trial
  double trials_ = 0;        // chunks that may be tried
};

}  // namespace isthmus::tracking
