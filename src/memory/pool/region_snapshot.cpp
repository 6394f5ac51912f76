// SPDX-License-Identifier: Apache-2.0
// Counts how the memory of a region heap is used.

#include <algorithm>

#include "memory/pool/own_caches.hpp"
#include "memory/pool/region_heap.hpp"
#include "memory/pool/slab.hpp"

namespace isthmus {
namespace {

void add_free(Snapshot& snapshot, std::size_t nbytes, bool passed) noexcept {
  (passed ? snapshot.free : snapshot.waiting) += nbytes;
  snapshot.largest_free = std::max(snapshot.largest_free, passed ? nbytes : 0);
}

}  // namespace

// The free run that begins at `first` now, if any.
std::optional<RegionHeap::FreeRun> RegionHeap::free_run_at(Index first) const noexcept {
  const auto& page = (*table_)[first];
  const auto is_free = [&page] { return page.state.load(k_relaxed) == PoolPage::State::free_head; };
  if (!is_free()) {
    return std::nullopt;
  }
  const std::lock_guard hold{lock_};
  return is_free() ? std::optional{FreeRun{runs_.length_of(first), runs_.ticket_of(first)}}
                   : std::nullopt;
}

// The pages from `number` on that lie in one region; empty if there are no more.
RegionHeap::SpanOfPages RegionHeap::pages_from(Index number) const noexcept {
  const std::lock_guard hold{lock_};
  const auto found = std::upper_bound(
      regions_.begin(), regions_.end(), number,
      [](Index wanted, const Region& each) { return wanted < each.first + each.count; });
  if (found == regions_.end()) {
    return {};
  }
  const auto first = std::max(number, found->first);
  return {first, found->first + found->count - first};
}

// The number of pages in [first, end) that can be moved to another address: whole chunks or, where
// chunks divide, parts that are large enough. Other pages are released to the driver instead.
RegionHeap::Index RegionHeap::movable_in(Index first, Index end) const noexcept {
  Index found = 0;
  while (first < end) {
    const auto [next, count] = some_movable_in(first, end);
    found += count;
    first = next;
  }
  return found;
}

// As `movable_in`, for a limited number of regions, since it holds the lock. Returns the page at
// which to continue, and the number of pages found.
std::pair<RegionHeap::Index, RegionHeap::Index> RegionHeap::some_movable_in(
    Index first, Index end) const noexcept {
  constexpr int k_max_regions = 64;
  Index found = 0;
  const std::lock_guard hold{lock_};
  auto each = std::upper_bound(
      regions_.begin(), regions_.end(), first,
      [](Index wanted, const Region& region) { return wanted < region.first + region.count; });
  for (int visited = 0; each != regions_.end() && each->first < end; ++each, ++visited) {
    if (visited == k_max_regions) {
      return {each->first, found};
    }
    const auto part = std::min(end, each->first + each->count) - std::max(first, each->first);
    found += (source_.divides() ? part >= k_min_part : part == each->count) ? part : 0;
  }
  return {end, found};
}

// Beyond its soft limit a pool releases free memory to the driver before it moves any.
RegionHeap::Index RegionHeap::max_movable(Index movable) const noexcept {
  const auto soft_limit = source_.sizes().soft_limit_bytes;
  const auto available = soft_limit - std::min(soft_limit, source_.counts().held_bytes());
  return static_cast<Index>(std::min<std::size_t>(movable, available / k_pool_page_bytes));
}

std::size_t RegionHeap::live_blocks_in(Slab& slab) const noexcept {
  return table_->common().has_live_marks.load(k_relaxed) ? slab.count_live() : slab.blocks;
}

// Determines the longest runs that a request could obtain. A stretch of pages that no caller holds
// can serve one request, once the thread's caches are flushed and neighbours are joined. Where
// chunks move, the chunks of all stretches together can serve one request.
class RegionHeap::Stretches {
 public:
  // `caches` null: counts nothing.
  Stretches(const RegionHeap& heap, const OwnCaches* caches) noexcept
      : heap_{heap}, caches_{caches} {}
  void add_free(Index first, Index count, Ticket until) noexcept {
    if (caches_ != nullptr) {
      add(first, count, caches_->readiness_of(until), false);
    }
  }
  void add_cached(Index first, Index count) noexcept {
    if (caches_ != nullptr) {
      add(first, count, caches_->readiness_of_run(first), true);
    }
  }
  void add_slab(Index first, const Slab& owner, unsigned size_class) noexcept {
    if (caches_ != nullptr) {
      add(first, owner.pages(), caches_->readiness_of_slab(owner, size_class), true);
    }
  }
  [[nodiscard]] Index longest() noexcept {
    close();
    return std::max(all_.longest, heap_.max_movable(movable_));
  }
  [[nodiscard]] Index longest_free() const noexcept { return free_.longest; }

 private:
  void add(Index first, Index count, Readiness readiness, bool is_cached) noexcept {
    if (readiness == Readiness::none) {
      return;
    }
    all_.add(first, count);
    if (!is_cached) {
      free_.add(first, count);
    }
    if (heap_.source_.moves() &&
        (readiness == Readiness::any_queue || heap_.source_.moves_in_order())) {
      if (first != moving_.end) {
        close();
      }
      moving_.add(first, count);
    }
  }
  struct Row {
    Index begin = 0;
    Index end = 0;
    Index longest = 0;

    void add(Index first, Index count) noexcept {
      begin = first == end ? begin : first;
      end = first + count;
      longest = std::max(longest, end - begin);
    }
  };
  void close() noexcept {
    movable_ += moving_.end != 0 ? heap_.movable_in(moving_.begin, moving_.end) : 0;
    moving_ = {};
  }

  const RegionHeap& heap_;
  const OwnCaches* const caches_;
  Row all_;
  Row free_;
  Row moving_;
  Index movable_ = 0;
};

// Reads every run and slab, and holds the lock for one free run, or for some regions, at a time,
// since the whole count may take milliseconds.
RegionHeap::Counted RegionHeap::count(const OwnCaches* caches) const {
  Snapshot snapshot;
  Stretches stretches{*this, caches};
  const bool has_live_marks = table_->common().has_live_marks.load(k_relaxed);
  const Slab* last = nullptr;
  for (auto span = pages_from(1); span.count != 0;) {
    auto& page = (*table_)[span.first];
    Index step = 1;
    auto* owner = page.is_slab() ? page.in_slab(std::memory_order_acquire) : nullptr;
    if (owner != nullptr && owner != last) {
      const auto blocks = live_blocks_in(*owner);
      snapshot.live += blocks * owner->block_bytes;
      snapshot.live_blocks += blocks;
      if (blocks == 0 || !has_live_marks) {
        stretches.add_slab(span.first, *owner, page.span.load(k_relaxed));
      }
      last = owner;
    } else if (const auto free = free_run_at(span.first)) {
      step = free->count;
      add_free(snapshot, std::size_t{step} * k_pool_page_bytes, slots_.passed(free->until));
      stretches.add_free(span.first, step, free->until);
    } else if (page.begins_run()) {
      step = std::clamp(page.span.load(k_relaxed), step, PoolPageTable::k_pages - span.first);
      if (page.is_live_run()) {
        snapshot.live += std::size_t{step} * k_pool_page_bytes;
        ++snapshot.live_blocks;
      } else {
        stretches.add_cached(span.first, step);
      }
    }
    // A run may span adjacent regions.
    span = step < span.count ? SpanOfPages{span.first + step, span.count - step}
                             : pages_from(span.first + step);
  }
  snapshot.held =
      std::max(source_.counts().held_bytes(), snapshot.live + snapshot.waiting + snapshot.free);
  snapshot.cached = snapshot.held - (snapshot.live + snapshot.waiting + snapshot.free);
  return {snapshot, stretches.longest(), stretches.longest_free()};
}

}  // namespace isthmus
