// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/unused_regions.hpp"

#include <algorithm>
#include <utility>

#include "core/expects.hpp"

namespace isthmus {

UnusedRegions::Index UnusedRegions::min_run() const noexcept {
  heap_.lock_.assert_held();
  Index min_count = heap_.source_.divides() ? k_min_part : PoolPageTable::k_pages;
  for (const auto& each : heap_.regions_) {
    min_count = std::min(min_count, each.count);
  }
  return min_count;
}

std::vector<UnusedRegion> UnusedRegions::find(QueueFences::EntryIndex entry) const {
  heap_.lock_.assert_held();
  auto& regions = heap_.regions_;
  const auto& source = heap_.source_;
  std::vector<UnusedRegion> found;
  found.reserve(regions.size());
  const bool divides = source.divides();
  heap_.runs_.visit_free(min_run(), [&](Index first, Index count, Ticket until) {
    heap_.lock_.assert_held();
    const auto& fences = heap_.fences_;
    if (!(source.moves_in_order() ? fences.is_usable(until, entry) : fences.passed(until))) {
      return;
    }
    const auto end = first + count;
    for (auto at = regions.find(first); at != regions.end() && at->first < end; ++at) {
      const auto part_begin = std::max(first, at->first);
      const auto part_end = std::min(end, at->first + at->count);
      if (part_end - part_begin == at->count || (divides && part_end - part_begin >= k_min_part)) {
        found.push_back({static_cast<std::size_t>(at - regions.begin()), part_begin,
                         part_end - part_begin, first, until});
      }
    }
  });
  std::sort(found.begin(), found.end(),
            [](const UnusedRegion& a, const UnusedRegion& b) { return a.first < b.first; });
  return found;
}

// A free run that contained several of them is split repeatedly.
std::vector<Region> UnusedRegions::remove(const std::vector<UnusedRegion>& unused) {
  heap_.lock_.assert_held();
  ISTHMUS_EXPECTS(std::ranges::is_sorted(unused, {}, &UnusedRegion::first));
  auto& regions = heap_.regions_;
  std::vector<Region> removed;
  if (unused.empty()) {
    return removed;
  }
  std::vector<Region> remaining;
  removed.reserve(unused.size());
  remaining.reserve(regions.size() + unused.size());
  auto last_run = RunHeap::k_none;
  auto last_run_rest = last_run;
  auto next = unused.begin();
  for (std::size_t position = 0; position < regions.size(); ++position) {
    auto rest = regions[position];
    for (; next != unused.end() && next->position == position; ++next) {
      const auto run = next->run == last_run ? last_run_rest : next->run;
      last_run = next->run;
      heap_.runs_.remove(run, next->first, next->count);
      last_run_rest = next->first + next->count;
      if (next->first != rest.first) {
        remaining.push_back(heap_.source_.split(rest, next->first - rest.first));
      }
      removed.push_back(next->count == rest.count ? std::exchange(rest, {})
                                                  : heap_.source_.split(rest, next->count));
      process_page_map.remove(removed.back().base, removed.back().count);
    }
    if (rest.count != 0) {
      remaining.push_back(rest);
    }
  }
  regions.swap(remaining);
  return removed;
}

Region UnusedRegions::remove_whole(RegionList::Iterator found, Index run) noexcept {
  heap_.lock_.assert_held();
  const auto region = *found;
  heap_.runs_.remove(run, region.first, region.count);
  process_page_map.remove(region.base, region.count);
  heap_.regions_.erase(found);
  return region;
}

}  // namespace isthmus
