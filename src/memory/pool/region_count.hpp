// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counts how the memory of a region heap is used, and determines the longest run that a request
// could obtain.

#include <optional>
#include <utility>

#include "memory/base/snapshot.hpp"
#include "memory/pool/own_caches.hpp"
#include "memory/pool/region_heap.hpp"
#include "memory/pool/slab.hpp"

namespace isthmus {

// How the memory is used, and the pages of the longest run that a request of this thread could
// obtain without more memory from the driver: `longest` includes the memory in the thread's caches;
// `longest_free` counts only free memory.
struct CountedRuns {
  Snapshot snapshot;
  RegionHeap::Index longest = 0;
  RegionHeap::Index longest_free = 0;
};

// Used by one thread. Takes the lock of the heap for one free run, or for some regions, at a time,
// since a whole count may take milliseconds.
class RegionCount {
 public:
  // `caches`: the thread's caches; null: does not determine the longest runs, which are 0 then.
  RegionCount(const RegionHeap& heap, const OwnCaches* caches) noexcept
      : heap_{heap}, caches_{caches} {}

  // Visits every run and slab.
  [[nodiscard]] CountedRuns count() const;

 private:
  using Index = RegionHeap::Index;
  struct FreeRun {
    Index count;
    Ticket until;
  };
  struct PageSpan {
    Index first = RunHeap::k_none;
    Index count = 0;
  };
  class Stretches;

  // The free run that begins at `first` now, if any.
  [[nodiscard]] std::optional<FreeRun> free_run_at(Index first) const noexcept;
  // The pages from `number` on that lie in one region; empty if there are no more.
  [[nodiscard]] PageSpan pages_from(Index number) const noexcept;
  // The number of pages in [first, end) that can be moved to another address: whole chunks or,
  // where chunks divide, parts that are large enough. Other pages are released to the driver
  // instead.
  [[nodiscard]] Index movable_in(Index first, Index end) const noexcept;
  // As `movable_in`, for a limited number of regions. Returns the page at which to continue, and
  // the number of pages found.
  [[nodiscard]] std::pair<Index, Index> some_movable_in(Index first, Index end) const noexcept;
  // Beyond its soft limit a pool releases free memory to the driver before it moves any.
  [[nodiscard]] Index max_movable(Index movable) const noexcept;
  [[nodiscard]] std::size_t live_blocks_in(Slab& slab) const noexcept;
  // Whether slabs record which of their blocks are live.
  [[nodiscard]] bool has_live_marks() const noexcept {
    return heap_.table().common().has_live_marks.load(k_relaxed);
  }
  // Counts what begins at page `first`, and returns the number of pages to skip.
  [[nodiscard]] Index count_at(Index first, Snapshot& snapshot, Stretches& stretches,
                               const Slab*& last) const noexcept;

  const RegionHeap& heap_;
  const OwnCaches* const caches_;
};

}  // namespace isthmus
