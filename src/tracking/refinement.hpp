// SPDX-License-Identifier: Apache-2.0
#pragma once
// Decides which huge pages of a tracked memory are tracked by small pages: those that are written
// often but sparsely. Not thread-safe.
//
// A huge page that is tracked whole costs a copy of 2 MiB, about 40 us, in each round in which a
// byte of it was written. A huge page that is tracked by small pages costs a fault for each small
// page that is written. At 0.6 to 1.9 us a fault (hosts of H100s and H200s), faults on all of its
// small pages cost as much as 8 to 26 copies. The cheaper choice cannot be predicted, so a few
// pages are tried. A trial costs at most a sixteenth of the copies of whole pages since the last
// trial, so a program that never gains loses little. After a successful trial the next one has
// twice as many pages; after an unsuccessful one the next trial is delayed four times as long.
// There is no trial in a round in which more than three quarters of the pages are written. The
// number of pages that are tracked by small ones is limited. A round in which all of these are
// written completely takes at most one and a half times as long as a copy of the memory.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/range_set.hpp"

namespace isthmus::tracking {

// A chunk is a huge page; chunks are numbered from the beginning of the memory.
class Refinement {
 public:
  // `dense` is the cost of write faults on all small pages of a chunk, in units of one copy of the
  // chunk. Throws std::bad_alloc; no other function of this class throws.
  Refinement(std::size_t chunks, std::size_t dense);

  // Chunks that must now be split into small pages, and merged into huge pages.
  struct Changes {
    std::vector<std::size_t> split, merge;  // in no particular order
  };
  // Evaluates the ranges that a scan reported; called after each scan. The returned changes are
  // valid until the next call.
  const Changes& evaluate(const RangeSet& found) noexcept;

  [[nodiscard]] bool is_whole(std::size_t number) const noexcept {
    return number < chunks_.size() && chunks_[number].state == Resolution::whole;
  }
  // Tracks the chunk by small pages permanently.
  void keep_small(std::size_t number) noexcept;
  // Tracks the chunk by small pages until `release_small_except` releases it.
  void request_small(std::size_t number) noexcept;
  // Releases the chunks of `request_small` that `needed` does not overlap. Returns the chunks to
  // merge because too many are tracked by small pages. The result is valid until the next call.
  const std::vector<std::size_t>& release_small_except(const RangeSet& needed) noexcept;
  [[nodiscard]] std::size_t small() const noexcept { return small_; }

 private:
  enum class Resolution : std::uint8_t { whole, on_trial, small, requested, always_small };
  struct Chunk {
    std::uint32_t written = 0;  // bytes, in this scan
    std::uint16_t heat = 0;     // scans that reported it as written since its last trial, if any
    Resolution state = Resolution::whole;
  };

  void count(const RangeSet& found) noexcept;
  void evaluate_chunk(std::size_t number) noexcept;
  void evaluate_small(std::size_t number) noexcept;
  void start_trials() noexcept;

  std::vector<Chunk> chunks_;
  std::vector<std::size_t> touched_;    // chunks that this scan reported
  std::vector<std::size_t> hot_;        // those of `touched_` that may be tried
  std::vector<std::size_t> requested_;  // chunks of `request_small`
  Changes changes_;
  std::size_t max_small_;
  std::size_t small_ = 0;
  std::size_t copies_since_trial_ = 0;  // copies of whole chunks since the last trial
  std::size_t trial_size_ = 1;          // chunks of the next trial
  std::size_t min_price_;               // initial `price_`
  std::size_t price_;  // copies of whole chunks required per chunk of the next trial
};

}  // namespace isthmus::tracking
