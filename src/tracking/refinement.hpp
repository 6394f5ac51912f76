// SPDX-License-Identifier: Apache-2.0
#pragma once
// Decides which huge pages of a memory are tracked by small pages: those that are written often,
// but sparsely. Not thread-safe.
//
// A huge page that is tracked whole costs a copy of 2 MiB, about 40 us, each time a byte of it was
// written. One that is tracked by small pages costs a fault for each small page that is written,
// and if all are, as much as 8 to 26 copies: at 0.6 to 1.9 us a fault (hosts of H100s and H200s).
// Which is cheaper cannot be predicted, so a few pages are tried, at a cost of at most a sixteenth
// of the copies of whole pages since the last trial: a program that never gains loses little. After
// a trial that gains, twice as many pages are tried next; after one that does not, the next trial
// waits four times as long. Nothing is tried in a round in which more than three quarters of the
// pages are written. The number of pages tracked by small ones is limited so that a round in which
// all of these are written completely takes at most one and a half times as long as a copy of the
// memory.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/range_set.hpp"

namespace isthmus::tracking {

// Chunks are huge pages, counted from the beginning of the memory.
class Refinement {
 public:
  // `dense`: cost of the faults of all small pages of a chunk, in copies of it. Throws
  // std::bad_alloc; no other function of this class throws.
  Refinement(std::size_t chunks, std::size_t dense);

  // Chunks to track by small pages, and by huge ones, from here on.
  struct Changes {
    std::vector<std::size_t> split, merge;  // in no order
  };
  // Call after each scan with what it found. The changes are valid until the next call.
  const Changes& evaluate(const RangeSet& found) noexcept;

  [[nodiscard]] bool is_whole(std::size_t number) const noexcept {
    return number < chunks_.size() && chunks_[number].state == Resolution::whole;
  }
  // The chunk is tracked by small pages permanently.
  void keep_small(std::size_t number) noexcept;
  // The chunk is tracked by small pages until `release_small_except` releases it.
  void request_small(std::size_t number) noexcept;
  // Releases the chunks of `request_small` that `needed` does not touch. Returns those to track
  // whole, because there are too many small ones. Valid until the next call.
  const std::vector<std::size_t>& release_small_except(const RangeSet& needed) noexcept;
  [[nodiscard]] std::size_t small() const noexcept { return small_; }

 private:
  enum class Resolution : std::uint8_t { whole, on_trial, small, requested, always_small };
  struct Chunk {
    std::uint32_t written = 0;  // bytes, in this scan
    std::uint16_t heat = 0;     // scans that found it written, since its last trial if any
    Resolution state = Resolution::whole;
  };

  void count(const RangeSet& found) noexcept;
  void evaluate_chunk(std::size_t number) noexcept;
  void evaluate_small(std::size_t number) noexcept;
  void start_trials() noexcept;

  std::vector<Chunk> chunks_;
  std::vector<std::size_t> touched_;    // by this scan
  std::vector<std::size_t> hot_;        // of these, those that may be tried
  std::vector<std::size_t> requested_;  // by `request_small`
  Changes changes_;
  std::size_t max_small_;
  std::size_t small_ = 0;
  std::size_t copies_since_trial_ = 0;  // copies of whole chunks since the last trial
  std::size_t trial_size_ = 1;          // chunks of the next trial
  std::size_t min_price_;               // of a chunk that is not known to pay, in such copies
  std::size_t price_;                   // of a chunk of the next trial
};

}  // namespace isthmus::tracking
