// SPDX-License-Identifier: Apache-2.0
#pragma once
// Returns free memory of a region heap to the driver.

#include <cstddef>
#include <vector>

#include "memory/pool/deferred_regions.hpp"
#include "memory/pool/growth_turns.hpp"
#include "memory/pool/region_heap.hpp"

namespace isthmus {

// Thread-safe. Calls the driver, so the caller holds no lock.
class RegionTrim {
 public:
  // The arguments must outlive the object.
  RegionTrim(RegionHeap& heap, RegionSource& source, GrowthTurns& turns,
             DeferredRegions& deferred) noexcept
      : heap_{heap}, source_{source}, turns_{turns}, deferred_{deferred} {}

  // Releases free memory while more than `keep` bytes are held: whole regions and, where regions
  // divide, parts that are large enough. Returns the bytes released.
  std::size_t trim(std::size_t keep) noexcept;
  // Releases unused regions that could not serve the request, smallest first, until they amount to
  // the `needed` bytes about to be requested from the driver. For regions that cannot
  // move.
  void release_unused(std::size_t needed) noexcept;

 private:
  [[nodiscard]] std::vector<Region> remove_excess(std::size_t keep);
  std::size_t trim_one_by_one(std::size_t keep) noexcept;

  RegionHeap& heap_;
  RegionSource& source_;
  GrowthTurns& turns_;
  DeferredRegions& deferred_;
};

}  // namespace isthmus
