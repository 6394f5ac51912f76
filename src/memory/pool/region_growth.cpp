// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/region_growth.hpp"

#include <new>
#include <vector>

#include "core/undo.hpp"

namespace isthmus {

// Chunks that one thread has removed in order to move them are invisible to other threads. So
// threads grow the heap one at a time, and each first tries the memory that the previous thread
// added.
Result<RegionHeap::PageRun> RegionGrowth::grow(RegionHeap::Index count, std::size_t alignment,
                                               QueueFences::EntryIndex entry) {
  using Cut = RegionHeap::Cut;
  GrowthTurns::Turn turn{turns_};
  for (auto cut = Cut::sparing_idle;; cut = Cut::any) {
    if (const auto found = heap_.allocate(count, alignment, entry, cut); found.count != 0) {
      return found;
    }
    ISTHMUS_TRY(grow_for(count, alignment, entry, turn));
  }
}

Result<void> RegionGrowth::grow_for(RegionHeap::Index count, std::size_t alignment,
                                    QueueFences::EntryIndex entry, GrowthTurns::Turn& turn) {
  const auto slack = alignment > k_pool_page_bytes ? alignment - k_pool_page_bytes : 0;
  const auto needed = count * k_pool_page_bytes + slack;
  if (needed > RegionHeap::k_max_bytes) {
    return RegionHeap::exceeds_max(needed);
  }
  const auto wanted = source_.growth_for(needed);
  if (source_.moves()) {
    return assembler_.assemble(needed, wanted, entry);
  }
  return wanted > needed && add_region(wanted, turn) ? Result<void>{} : add_region(needed, turn);
}

Result<void> RegionGrowth::grow_by(std::size_t nbytes) {
  GrowthTurns::Turn turn{turns_};
  return add_region(nbytes, turn);
}

Result<void> RegionGrowth::add_region(std::size_t nbytes, GrowthTurns::Turn& turn) try {
  if (nbytes > RegionHeap::k_max_bytes) {
    return RegionHeap::exceeds_max(nbytes);
  }
  if (source_.moves()) {
    return assembler_.assemble(nbytes, nbytes, QueueFences::k_no_queue);
  }
  std::vector<RegionHeap::Piece> row(1);
  auto region = source_.allocate(nbytes);
  ISTHMUS_TRY(region);
  row.front().region = *region;
  Undo undo{[&] { source_.deallocate(*region); }};
  turn.begin_adding();
  ISTHMUS_TRY(heap_.enter(row));
  undo.dismiss();
  return {};
} catch (const std::bad_alloc&) {
  return Error::no_memory();
}

}  // namespace isthmus
