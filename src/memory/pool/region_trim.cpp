// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/region_trim.hpp"

#include <algorithm>
#include <new>

#include "core/expects.hpp"
#include "memory/pool/unused_regions.hpp"

namespace isthmus {

std::vector<Region> RegionTrim::remove_excess(std::size_t keep) {
  UnusedRegions unused{heap_};
  if (turns_.is_adding()) {
    return {};
  }
  std::vector<UnusedRegion> chosen;
  auto held = source_.counts().held_bytes();
  for (auto each : unused.find(QueueFences::k_no_queue)) {
    const auto& region = unused.region_of(each);
    if (deferred_.has_old_mapping(region)) {
      continue;
    }
    const auto excess = held > keep ? held - keep : 0;
    auto nbytes = each.count == region.count ? region.driver_bytes : each.count * k_pool_page_bytes;
    if (nbytes > excess && source_.divides() &&
        excess >= UnusedRegions::k_min_part * k_pool_page_bytes) {
      each.count = static_cast<RegionHeap::Index>(excess / k_pool_page_bytes);
      nbytes = each.count * k_pool_page_bytes;
    }
    if (nbytes <= excess) {
      held -= nbytes;
      chosen.push_back(each);
    }
  }
  return unused.remove(chosen);
}

// Used if the host has no memory for lists: slow, and releases whole regions only.
std::size_t RegionTrim::trim_one_by_one(std::size_t keep) noexcept {
  std::size_t released = 0;
  for (;;) {
    const auto held = source_.counts().held_bytes();
    const auto excess = held - std::min(held, keep);
    Region region;
    {
      UnusedRegions unused{heap_};
      if (!turns_.is_adding()) {
        region = unused.remove_smallest([&](const Region& each) {
          return each.driver_bytes <= excess && !deferred_.has_old_mapping(each);
        });
      }
    }
    if (region.count == 0) {
      return released;
    }
    source_.deallocate(region);
    released += region.driver_bytes;
  }
}

std::size_t RegionTrim::trim(std::size_t keep) noexcept {
  const GrowthTurns::Turn turn{turns_};
  try {
    // First: chunks cannot be released before their old mappings.
    auto released = deferred_.release_ended();
    const auto all = remove_excess(keep);
    for (const auto& region : all) {
      source_.deallocate(region);
      released += region.driver_bytes;
    }
    return released;
  } catch (const std::bad_alloc&) {
    return trim_one_by_one(keep);
  }
}

void RegionTrim::release_unused(std::size_t needed) noexcept {
  ISTHMUS_EXPECTS(!source_.moves());
  std::size_t released = 0;
  while (released < needed) {
    Region region;
    {
      UnusedRegions unused{heap_};
      if (!turns_.is_adding()) {
        region = unused.remove_smallest([](const Region&) { return true; });
      }
      if (region.nbytes() >= needed) {
        unused.pay_for_swap();
      }
    }
    if (region.count == 0) {
      return;
    }
    source_.deallocate(region);
    released += region.driver_bytes;
  }
}

}  // namespace isthmus
