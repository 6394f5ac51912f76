// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/region_assembler.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "core/expects.hpp"
#include "core/sizes.hpp"
#include "memory/pool/region_assembly.hpp"
#include "memory/pool/unused_regions.hpp"

namespace isthmus {
namespace {

using Index = RegionHeap::Index;

// Chooses the pieces to move: one piece that suffices alone; otherwise the longest pieces first, so
// that few are moved, and as the last one the shortest that suffices. The surplus remains attached
// to the run: if it were split off, it would be one more piece to move next time. The result is
// sorted by first page.
std::vector<UnusedRegion> choose(std::vector<UnusedRegion> all, Index wanted) {
  std::stable_sort(all.begin(), all.end(),
                   [](const UnusedRegion& a, const UnusedRegion& b) { return a.count > b.count; });
  std::vector<UnusedRegion> chosen;
  chosen.reserve(all.size());
  auto missing = wanted;
  const UnusedRegion* last = nullptr;
  for (const auto& each : all) {
    if (each.count <= missing) {
      missing -= each.count;
      chosen.push_back(each);
    } else {
      last = &each;
    }
  }
  if (last != nullptr && (missing != 0 || last->count >= wanted)) {
    if (last->count >= wanted) {
      chosen.clear();
    }
    chosen.push_back(*last);
  }
  std::sort(chosen.begin(), chosen.end(),
            [](const UnusedRegion& a, const UnusedRegion& b) { return a.first < b.first; });
  return chosen;
}

}  // namespace

std::vector<RegionHeap::Piece> RegionAssembler::remove_to_move(std::size_t needed,
                                                               QueueFences::EntryIndex entry) {
  UnusedRegions unused{heap_};
  // Joins neighbouring runs first. Otherwise a chunk that consists of two free runs, one of them
  // used by work of this queue, would count as in use: recorded training whose host runs ahead held
  // 1.027 times the requested bytes without this, 1.015 with it.
  if (source_.moves_in_order()) {
    unused.unite(entry);
  }
  const auto wanted = static_cast<Index>(pool_pages_for(needed));
  const auto chosen = choose(unused.find(entry), wanted);
  std::vector<RegionHeap::Piece> pieces(chosen.size());
  deferred_.reserve(2 * chosen.size());  // each, and the mapping that it leaves
  const auto regions = unused.remove(chosen);
  std::transform(regions.begin(), regions.end(), chosen.begin(), pieces.begin(),
                 [](const Region& region, const UnusedRegion& each) {
                   return RegionHeap::Piece{region, each.until};
                 });
  return pieces;
}

// Requests from the driver only the bytes that the moved pieces lack. False if a failed move left
// less than is needed.
Result<bool> RegionAssembler::assemble_from(std::vector<RegionHeap::Piece> to_move,
                                            std::size_t needed, std::size_t wanted) {
  RegionAssembly assembly{source_, deferred_, std::move(to_move)};
  assembly.release_small_pieces(needed);
  const auto available_bytes = assembly.available_bytes();
  const auto min_bytes = std::max(round_up(needed, source_.unit()), available_bytes);
  const auto max_bytes =
      std::clamp(available_bytes != 0 ? min_bytes : round_up(wanted, source_.unit()), min_bytes,
                 std::max(min_bytes, RegionHeap::k_max_bytes));
  if (!assembly.reserve(max_bytes)) {
    ISTHMUS_TRY(assembly.reserve(min_bytes));
  }
  assembly.move();
  Result<void> status;
  if (!assembly.is_move_blocked() && assembly.filled() < needed) {
    status = assembly.create(assembly.capacity(), min_bytes);
    if (!status) {
      status = assembly.create(min_bytes, min_bytes);
    }
  }
  const bool is_enough = assembly.filled() >= needed;
  if (!assembly.row().empty()) {
    ISTHMUS_TRY(heap_.enter(assembly.row()));
  }
  ISTHMUS_TRY(status);
  return is_enough;
}

Result<void> RegionAssembler::assemble(std::size_t needed, std::size_t wanted,
                                       QueueFences::EntryIndex entry) try {
  ISTHMUS_EXPECTS(source_.moves());
  deferred_.release_ended();
  auto moved = assemble_from(remove_to_move(needed, entry), needed, wanted);
  ISTHMUS_TRY(moved);
  if (!*moved) {
    ISTHMUS_TRY(assemble_from({}, needed, wanted));
  }
  return {};
} catch (const std::bad_alloc&) {
  return Error::no_memory();
}

}  // namespace isthmus
