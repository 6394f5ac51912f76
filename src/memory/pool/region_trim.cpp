// SPDX-License-Identifier: Apache-2.0
// Release of the memory of a region heap.

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

#include "core/sizes.hpp"
#include "memory/pool/region_heap.hpp"

namespace isthmus {

// The minimum length of a free run that may contain a region, or a part of one, that can be
// released. Pre: the lock is held.
RegionHeap::Index RegionHeap::min_releasable() const noexcept {
  Index min_count = source_.divides() ? k_min_part : PoolPageTable::k_pages;
  for (const auto& each : regions_) {
    min_count = std::min(min_count, each.count);
  }
  return min_count;
}

// Unused regions, and unused parts of regions that divide, sorted by first page. Those with pending
// work are included only where regions move in order, for the queue of that work. Pre: the lock is
// held.
std::vector<RegionHeap::Unused> RegionHeap::find_unused(QueueSlots::EntryIndex entry) const {
  std::vector<Unused> found;
  found.reserve(regions_.size());
  const bool divides = source_.divides();
  runs_.visit_free(min_releasable(), [&](Index first, Index count, Ticket until) {
    if (!(source_.moves_in_order() ? slots_.is_usable(until, entry) : slots_.passed(until))) {
      return;
    }
    const auto end = first + count;
    for (auto at = region_of(first); at != regions_.end() && at->first < end; ++at) {
      const auto part_begin = std::max(first, at->first);
      const auto part_end = std::min(end, at->first + at->count);
      if (part_end - part_begin == at->count || (divides && part_end - part_begin >= k_min_part)) {
        found.push_back({static_cast<std::size_t>(at - regions_.begin()), part_begin,
                         part_end - part_begin, first, until});
      }
    }
  });
  std::sort(found.begin(), found.end(),
            [](const Unused& a, const Unused& b) { return a.first < b.first; });
  return found;
}

// Pre: the lock is held; `unused` is sorted by first page. A free run that contained several of
// them is split repeatedly.
std::vector<Region> RegionHeap::remove_unused(const std::vector<Unused>& unused) {
  std::vector<Region> removed;
  if (unused.empty()) {
    return removed;
  }
  std::vector<Region> remaining;
  removed.reserve(unused.size());
  remaining.reserve(regions_.size() + unused.size());
  auto last_run = RunHeap::k_none;
  auto last_run_rest = last_run;
  auto next = unused.begin();
  for (std::size_t position = 0; position < regions_.size(); ++position) {
    auto rest = regions_[position];
    for (; next != unused.end() && next->position == position; ++next) {
      const auto run = next->run == last_run ? last_run_rest : next->run;
      last_run = next->run;
      runs_.remove(run, next->first, next->count);
      last_run_rest = next->first + next->count;
      if (next->first != rest.first) {
        remaining.push_back(source_.split(rest, next->first - rest.first));
      }
      removed.push_back(next->count == rest.count ? std::exchange(rest, {})
                                                  : source_.split(rest, next->count));
      process_page_map.remove(removed.back().base, removed.back().count);
    }
    if (rest.count != 0) {
      remaining.push_back(rest);
    }
  }
  regions_.swap(remaining);
  return removed;
}

std::vector<Region> RegionHeap::remove_to_trim(std::size_t keep) {
  const std::lock_guard hold{lock_};
  std::vector<Unused> unused;
  if (turns_adding_.load(std::memory_order_relaxed) != 0) {
    return {};
  }
  auto held = source_.counts().held_bytes();
  for (auto each : find_unused(QueueSlots::k_no_queue)) {
    const auto& region = regions_[each.position];
    if (has_old_mapping(region)) {
      continue;
    }
    const auto excess = held > keep ? held - keep : 0;
    auto nbytes = each.count == region.count ? region.driver_bytes : each.count * k_pool_page_bytes;
    if (nbytes > excess && source_.divides() && excess >= k_min_part * k_pool_page_bytes) {
      each.count = static_cast<Index>(excess / k_pool_page_bytes);
      nbytes = each.count * k_pool_page_bytes;
    }
    if (nbytes <= excess) {
      held -= nbytes;
      unused.push_back(each);
    }
  }
  return remove_unused(unused);
}

// Removes the smallest region that is free as a whole and has at most `max_bytes` bytes; empty if
// there is none. Pre: the lock is held.
Region RegionHeap::remove_smallest_free(std::size_t max_bytes) noexcept {
  if (turns_adding_.load(std::memory_order_relaxed) != 0) {
    return {};
  }
  auto found = regions_.cend();
  auto inside = RunHeap::k_none;
  runs_.visit_free(min_releasable(), [&](Index first, Index count, Ticket until) {
    for (auto at = region_of(first); at != regions_.end() && at->first < first + count; ++at) {
      if (at->first >= first && at->first + at->count <= first + count &&
          at->driver_bytes <= max_bytes && slots_.passed(until) && !has_old_mapping(*at) &&
          (found == regions_.end() || at->count < found->count)) {
        found = at;
        inside = first;
      }
    }
  });
  if (found == regions_.end()) {
    return {};
  }
  const auto region = *found;
  runs_.remove(inside, region.first, region.count);
  process_page_map.remove(region.base, region.count);
  regions_.erase(found);
  return region;
}

// Used if the host has no memory for lists: slow, and releases whole regions only.
std::size_t RegionHeap::trim_one_by_one(std::size_t keep) noexcept {
  std::size_t released = 0;
  for (;;) {
    const auto held = source_.counts().held_bytes();
    Region region;
    {
      const std::lock_guard hold{lock_};
      region = remove_smallest_free(held - std::min(held, keep));
    }
    if (region.count == 0) {
      return released;
    }
    source_.deallocate(region);
    released += region.driver_bytes;
  }
}

std::size_t RegionHeap::trim(std::size_t keep) noexcept {
  const Turn turn{*this};
  try {
    auto released = drop_ended();  // first: chunks cannot be released before their old mappings
    const auto all = remove_to_trim(keep);
    for (const auto& region : all) {
      source_.deallocate(region);
      released += region.driver_bytes;
    }
    return released;
  } catch (const std::bad_alloc&) {
    return trim_one_by_one(keep);
  }
}

void RegionHeap::release_unused(std::size_t needed) noexcept {
  std::size_t released = 0;
  while (released < needed) {
    Region region;
    {
      const std::lock_guard hold{lock_};
      region = remove_smallest_free(SIZE_MAX);
      if (region.nbytes() >= needed) {
        swap_credit_ -= std::min(swap_credit_, k_swap_cost);
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
