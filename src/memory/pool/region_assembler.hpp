// SPDX-License-Identifier: Apache-2.0
#pragma once
// Growth of a region heap whose memory can move: free chunks are remapped side by side to new
// addresses, and new chunks are created after them.

#include <cstddef>
#include <vector>

#include "memory/pool/deferred_regions.hpp"
#include "memory/pool/region_heap.hpp"

namespace isthmus {

// Called by one thread at a time: the one that holds the growth turn. Calls the driver.
class RegionAssembler {
 public:
  // The arguments must outlive the object.
  RegionAssembler(RegionHeap& heap, RegionSource& source, DeferredRegions& deferred) noexcept
      : heap_{heap}, source_{source}, deferred_{deferred} {}

  // Adds a free run of at least `needed` bytes, usable by the queue of `entry`, to the heap: of
  // free chunks as far as there are any, else of `wanted` bytes of new memory. Errors as
  // `RegionSource::create`. Memory that was assembled before an error becomes ordinary free memory.
  [[nodiscard]] Result<void> assemble(std::size_t needed, std::size_t wanted,
                                      QueueFences::EntryIndex entry);

 private:
  [[nodiscard]] std::vector<RegionHeap::Piece> remove_to_move(std::size_t needed,
                                                              QueueFences::EntryIndex entry);
  [[nodiscard]] Result<bool> assemble_from(std::vector<RegionHeap::Piece> to_move,
                                           std::size_t needed, std::size_t wanted);

  RegionHeap& heap_;
  RegionSource& source_;
  DeferredRegions& deferred_;
};

}  // namespace isthmus
