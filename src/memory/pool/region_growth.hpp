// SPDX-License-Identifier: Apache-2.0
#pragma once
// Growth of a region heap: obtains memory from the driver or from upstream.

#include <cstddef>

#include "memory/pool/deferred_regions.hpp"
#include "memory/pool/growth_turns.hpp"
#include "memory/pool/region_assembler.hpp"
#include "memory/pool/region_heap.hpp"

namespace isthmus {

// Thread-safe. Calls the driver or upstream, so the caller holds no lock.
class RegionGrowth {
 public:
  // The arguments must outlive the object.
  RegionGrowth(RegionHeap& heap, RegionSource& source, GrowthTurns& turns,
               DeferredRegions& deferred) noexcept
      : heap_{heap}, source_{source}, turns_{turns}, assembler_{heap, source, deferred} {}

  // As `RegionHeap::allocate`, but obtains more memory unless another thread added enough
  // meanwhile. Errors as `RegionSource::allocate`.
  [[nodiscard]] Result<RegionHeap::PageRun> grow(RegionHeap::Index count, std::size_t alignment,
                                                 QueueFences::EntryIndex entry);
  // Adds a region of at least `nbytes` bytes.
  [[nodiscard]] Result<void> grow_by(std::size_t nbytes);

 private:
  [[nodiscard]] Result<void> grow_for(RegionHeap::Index count, std::size_t alignment,
                                      QueueFences::EntryIndex entry, GrowthTurns::Turn& turn);
  [[nodiscard]] Result<void> add_region(std::size_t nbytes, GrowthTurns::Turn& turn);

  RegionHeap& heap_;
  RegionSource& source_;
  GrowthTurns& turns_;
  RegionAssembler assembler_;
};

}  // namespace isthmus
