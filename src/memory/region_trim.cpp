// SPDX-License-Identifier: Apache-2.0
// How a region heap releases memory.

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

#include "core/sizes.hpp"
#include "memory/region_heap.hpp"

namespace isthmus {

// The minimum length of a free run that may contain a region, or a part of one, that can be
// released. Pre: the lock is held.
RegionHeap::Index RegionHeap::least_that_may_go() const noexcept {
  Index least = source_.divides() ? k_least_part : PoolPageTable::k_pages;
  for (const auto& each : regions_) {
    least = std::min(least, each.count);
  }
  return least;
}

// Unused regions, and unused parts of regions that divide, sorted by first page. Those with pending
// work are included only where regions move in order, for the queue of that work. Pre: the lock is
// held.
std::vector<RegionHeap::Unused> RegionHeap::find_unused(QueueSlots::Slot slot) const {
  std::vector<Unused> found;
  found.reserve(regions_.size());
  const bool divides = source_.divides();
  runs_.visit_free(least_that_may_go(), [&](Index first, Index count, Ticket until) {
    if (!(source_.moves_in_order() ? slots_.good(until, slot) : slots_.passed(until))) {
      return;
    }
    const auto end = first + count;
    for (auto at = region_of(first); at != regions_.end() && at->first < end; ++at) {
      const auto from = std::max(first, at->first);
      const auto to = std::min(end, at->first + at->count);
      if (to - from == at->count || (divides && to - from >= k_least_part)) {
        found.push_back(
            {static_cast<std::size_t>(at - regions_.begin()), from, to - from, first, until});
      }
    }
  });
  std::sort(found.begin(), found.end(),
            [](const Unused& a, const Unused& b) { return a.first < b.first; });
  return found;
}

// Pre: the lock is held; `which` is sorted by first page. A free run that contained several of them
// is split repeatedly.
std::vector<Region> RegionHeap::take_out(const std::vector<Unused>& which) {
  std::vector<Region> taken;
  if (which.empty()) {
    return taken;
  }
  std::vector<Region> left;
  taken.reserve(which.size());
  left.reserve(regions_.size() + which.size());
  auto was = RunHeap::k_none;
  auto left_of_it = was;
  auto next = which.begin();
  for (std::size_t position = 0; position < regions_.size(); ++position) {
    auto rest = regions_[position];
    for (; next != which.end() && next->position == position; ++next) {
      const auto run_now = next->run == was ? left_of_it : next->run;
      was = next->run;
      runs_.remove(run_now, next->first, next->count);
      left_of_it = next->first + next->count;
      if (next->first != rest.first) {
        left.push_back(source_.cut(rest, next->first - rest.first));
      }
      taken.push_back(next->count == rest.count ? std::exchange(rest, {})
                                                : source_.cut(rest, next->count));
      process_page_map.remove(taken.back().base, taken.back().count);
    }
    if (rest.count != 0) {
      left.push_back(rest);
    }
  }
  regions_.swap(left);
  return taken;
}

std::vector<Region> RegionHeap::take_to_trim(std::size_t keep) {
  const std::lock_guard hold{lock_};
  std::vector<Unused> which;
  if (fresh_.load(std::memory_order_relaxed) != 0) {
    return {};
  }
  auto held = source_.counts().held_bytes();
  for (auto each : find_unused(QueueSlots::k_quiet)) {
    const auto& in = regions_[each.position];
    if (is_elsewhere_too(in)) {
      continue;
    }
    const auto room = held > keep ? held - keep : 0;
    auto nbytes = each.count == in.count ? in.driver_bytes : each.count * k_pool_page_bytes;
    if (nbytes > room && source_.divides() && room >= k_least_part * k_pool_page_bytes) {
      each.count = static_cast<Index>(room / k_pool_page_bytes);
      nbytes = each.count * k_pool_page_bytes;
    }
    if (nbytes <= room) {
      held -= nbytes;
      which.push_back(each);
    }
  }
  return take_out(which);
}

// Takes out the smallest region that is free as a whole and has at most `room` bytes; empty if
// there is none. Pre: the lock is held.
Region RegionHeap::take_whole(std::size_t room) noexcept {
  if (fresh_.load(std::memory_order_relaxed) != 0) {
    return {};
  }
  auto found = regions_.cend();
  auto inside = RunHeap::k_none;
  runs_.visit_free(least_that_may_go(), [&](Index first, Index count, Ticket until) {
    for (auto at = region_of(first); at != regions_.end() && at->first < first + count; ++at) {
      if (at->first >= first && at->first + at->count <= first + count &&
          at->driver_bytes <= room && slots_.passed(until) && !is_elsewhere_too(*at) &&
          (found == regions_.end() || at->count < found->count)) {
        found = at;
        inside = first;
      }
    }
  });
  if (found == regions_.end()) {
    return {};
  }
  const auto taken = *found;
  runs_.remove(inside, taken.first, taken.count);
  process_page_map.remove(taken.base, taken.count);
  regions_.erase(found);
  return taken;
}

// Used if the host has no memory for lists: slow, and releases whole regions only.
std::size_t RegionHeap::trim_one_by_one(std::size_t keep) noexcept {
  std::size_t given_back = 0;
  for (;;) {
    const auto held = source_.counts().held_bytes();
    Region gone;
    {
      const std::lock_guard hold{lock_};
      gone = take_whole(held - std::min(held, keep));
    }
    if (gone.count == 0) {
      return given_back;
    }
    source_.give_back(gone);
    given_back += gone.driver_bytes;
  }
}

std::size_t RegionHeap::trim(std::size_t keep) noexcept {
  const Turn mine{*this};
  try {
    auto given_back = drop_what_ended();  // first, as chunks wait for their old mappings
    const auto all = take_to_trim(keep);
    for (const auto& gone : all) {
      source_.give_back(gone);
      given_back += gone.driver_bytes;
    }
    return given_back;
  } catch (const std::bad_alloc&) {
    return trim_one_by_one(keep);
  }
}

void RegionHeap::make_way(std::size_t needed) noexcept {
  std::size_t given_back = 0;
  while (given_back < needed) {
    Region gone;
    {
      const std::lock_guard hold{lock_};
      gone = take_whole(SIZE_MAX);
      if (gone.nbytes() >= needed) {
        thrift_ -= std::min(thrift_, k_swap_costs);
      }
    }
    if (gone.count == 0) {
      return;
    }
    source_.give_back(gone);
    given_back += gone.driver_bytes;
  }
}

}  // namespace isthmus
