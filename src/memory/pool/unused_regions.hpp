// SPDX-License-Identifier: Apache-2.0
#pragma once
// Finds the unused regions of a region heap and removes them, for the units that move them or
// return them to the driver.

#include <cstddef>
#include <vector>

#include "core/lock_guard.hpp"
#include "memory/pool/region_heap.hpp"

namespace isthmus {

// An unused region, or an unused part of one that divides.
struct UnusedRegion {
  std::size_t position;  // of the region in the heap's list
  RegionHeap::Index first;
  RegionHeap::Index count;
  RegionHeap::Index run;  // the free run that contains it
  Ticket until;
};

// Holds the lock of the heap while it exists, so the results remain valid. Used by one thread.
// Calls no driver; the caller releases what it removed after this object was destroyed.
class UnusedRegions {
 public:
  using Index = RegionHeap::Index;
  // The minimum size, in pages, of a part of a chunk that divides. A smaller part is not worth a
  // separate mapping, of which a process on Linux can have about 65,000. A whole chunk may be
  // smaller, since no mapping of it remains.
  static constexpr Index k_min_part = 32;

  explicit UnusedRegions(RegionHeap& heap) noexcept : heap_{heap}, hold_{heap.lock_} {}

  // Joins neighbouring runs that are usable by the queue of `entry`, so that a region in which
  // several such runs lie is found. Releases the lock at intervals: call it first.
  void unite(QueueFences::EntryIndex entry) noexcept {
    heap_.lock_.assert_held();
    heap_.unite_all(entry);
  }
  // Unused regions, and unused parts of regions that divide, sorted by first page. Those with
  // pending work are included only where regions move in order, for the queue of that work. Throws
  // std::bad_alloc.
  [[nodiscard]] std::vector<UnusedRegion> find(QueueFences::EntryIndex entry) const;
  // The region that contains it.
  [[nodiscard]] const Region& region_of(const UnusedRegion& unused) const noexcept {
    heap_.lock_.assert_held();
    return heap_.regions_[unused.position];
  }
  // Removes some of those found from the heap. Throws std::bad_alloc, without effect.
  // `unused` is sorted by first page.
  [[nodiscard]] std::vector<Region> remove(const std::vector<UnusedRegion>& unused);
  // Removes the smallest region that is free as a whole, is used by no work, and is accepted by
  // accept(region). Returns an empty region if there is none. Needs no host memory.
  template <class Accept>
  [[nodiscard]] Region remove_smallest(Accept&& accept) noexcept;
  // Call after a region was removed to obtain a smaller one.
  void pay_for_swap() noexcept {
    heap_.lock_.assert_held();
    heap_.swap_credit_.pay();
  }

 private:
  // The minimum length of a free run that may contain a region, or a part of one, that can be
  // removed.
  [[nodiscard]] Index min_run() const noexcept;
  [[nodiscard]] Region remove_whole(RegionList::Iterator found, Index run) noexcept;

  RegionHeap& heap_;
  const LockGuard<SpinLock> hold_;
};

template <class Accept>
Region UnusedRegions::remove_smallest(Accept&& accept) noexcept {
  heap_.lock_.assert_held();
  auto& regions = heap_.regions_;
  auto found = regions.end();
  auto inside = RunHeap::k_none;
  heap_.runs_.visit_free(min_run(), [&](Index first, Index count, Ticket until) {
    heap_.lock_.assert_held();
    const auto end = first + count;
    for (auto at = regions.find(first); at != regions.end() && at->first < end; ++at) {
      if (at->first >= first && at->first + at->count <= end && heap_.fences_.passed(until) &&
          accept(*at) && (found == regions.end() || at->count < found->count)) {
        found = at;
        inside = first;
      }
    }
  });
  return found == regions.end() ? Region{} : remove_whole(found, inside);
}

}  // namespace isthmus
