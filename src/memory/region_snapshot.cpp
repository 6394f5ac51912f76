// SPDX-License-Identifier: Apache-2.0
// Counts what the memory of a region heap is used for.

#include <algorithm>

#include "memory/own_caches.hpp"
#include "memory/region_heap.hpp"
#include "memory/slab.hpp"

namespace isthmus {
namespace {

void add_free(Snapshot& snapshot, std::size_t nbytes, bool passed) noexcept {
  (passed ? snapshot.free : snapshot.waiting) += nbytes;
  snapshot.largest_free = std::max(snapshot.largest_free, passed ? nbytes : 0);
}

}  // namespace

// The free run that begins at `first` now, if any.
std::optional<RegionHeap::FreeRun> RegionHeap::free_run_at(Index first) const noexcept {
  const auto& at = (*table_)[first];
  const auto is_free = [&at] { return at.is.load(k_relaxed) == PoolPage::State::free_head; };
  if (!is_free()) {
    return std::nullopt;
  }
  const std::lock_guard hold{lock_};
  return is_free() ? std::optional{FreeRun{runs_.length_of(first), runs_.ticket_of(first)}}
                   : std::nullopt;
}

// The pages from `number` on that lie in one region; empty if there are no more.
RegionHeap::SpanOfPages RegionHeap::grains_from(Index number) const noexcept {
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

// How many pages of [first, end) can move where they are needed: whole chunks or, where chunks
// divide, parts that are large enough. The others are released to the driver instead.
RegionHeap::Index RegionHeap::movable_in(Index first, Index end) const noexcept {
  Index found = 0;
  while (first < end) {
    const auto [next, count] = some_movable_in(first, end);
    found += count;
    first = next;
  }
  return found;
}

// The same for a limited number of regions, since this holds the lock. Returns where to continue,
// and the pages found.
std::pair<RegionHeap::Index, RegionHeap::Index> RegionHeap::some_movable_in(
    Index first, Index end) const noexcept {
  constexpr int k_most_regions = 64;
  Index found = 0;
  const std::lock_guard hold{lock_};
  auto each =
      std::upper_bound(regions_.begin(), regions_.end(), first,
                       [](Index wanted, const Region& in) { return wanted < in.first + in.count; });
  for (int seen = 0; each != regions_.end() && each->first < end; ++each, ++seen) {
    if (seen == k_most_regions) {
      return {each->first, found};
    }
    const auto part = std::min(end, each->first + each->count) - std::max(first, each->first);
    found += (source_.divides() ? part >= k_least_part : part == each->count) ? part : 0;
  }
  return {end, found};
}

// Beyond its soft limit a pool releases free memory to the driver before it moves any.
RegionHeap::Index RegionHeap::may_move_at_once(Index movable) const noexcept {
  const auto soft = source_.how().soft_limit_bytes;
  const auto room = soft - std::min(soft, source_.counts().held_bytes());
  return static_cast<Index>(std::min<std::size_t>(movable, room / k_pool_page_bytes));
}

std::size_t RegionHeap::live_blocks_in(Slab& in) const noexcept {
  return table_->common().knows_live.load(k_relaxed) ? in.count_live() : in.blocks;
}

// A stretch of pages that no caller holds serves one request, once the thread's caches are flushed
// and neighbours are joined. Where chunks move, those of all stretches serve one request together.
class RegionHeap::Stretches {
 public:
  // `mine` null: counts nothing.
  Stretches(const RegionHeap& heap, const OwnCaches* mine) noexcept : of_{heap}, mine_{mine} {}
  void add_free(Index first, Index count, Ticket until) noexcept {
    if (mine_ != nullptr) {
      add(first, count, mine_->of(until), false);
    }
  }
  void add_kept(Index first, Index count) noexcept {
    if (mine_ != nullptr) {
      add(first, count, mine_->of_run(first), true);
    }
  }
  void add_slab(Index first, const Slab& owner, unsigned size_class) noexcept {
    if (mine_ != nullptr) {
      add(first, owner.grains(), mine_->of_slab(owner, size_class), true);
    }
  }
  [[nodiscard]] Index longest() noexcept {
    close();
    return std::max(all_.longest, of_.may_move_at_once(movable_));
  }
  [[nodiscard]] Index longest_free() const noexcept { return free_.longest; }

 private:
  void add(Index first, Index count, Readiness readiness, bool is_kept) noexcept {
    if (readiness == Readiness::none) {
      return;
    }
    all_.add(first, count);
    if (!is_kept) {
      free_.add(first, count);
    }
    if (of_.source_.moves() && (readiness == Readiness::anybody || of_.source_.moves_in_order())) {
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
    movable_ += moving_.end != 0 ? of_.movable_in(moving_.begin, moving_.end) : 0;
    moving_ = {};
  }

  const RegionHeap& of_;
  const OwnCaches* const mine_;
  Row all_;
  Row free_;
  Row moving_;
  Index movable_ = 0;
};

// Reads every run and slab, and holds the lock for one free run, or for some regions, at a time:
// the whole may take milliseconds.
RegionHeap::Counted RegionHeap::count(const OwnCaches* mine) const {
  Snapshot seen;
  Stretches at_hand{*this, mine};
  const bool knows_live = table_->common().knows_live.load(k_relaxed);
  const Slab* last = nullptr;
  for (auto in = grains_from(1); in.count != 0;) {
    auto& at = (*table_)[in.first];
    Index step = 1;
    auto* owner = at.is_slab() ? at.in_slab(std::memory_order_acquire) : nullptr;
    if (owner != nullptr && owner != last) {
      const auto blocks = live_blocks_in(*owner);
      seen.live += blocks * owner->block_bytes;
      seen.live_blocks += blocks;
      if (blocks == 0 || !knows_live) {
        at_hand.add_slab(in.first, *owner, at.span.load(k_relaxed));
      }
      last = owner;
    } else if (const auto free = free_run_at(in.first)) {
      step = free->count;
      add_free(seen, std::size_t{step} * k_pool_page_bytes, slots_.passed(free->until));
      at_hand.add_free(in.first, step, free->until);
    } else if (at.begins_run()) {
      step = std::clamp(at.span.load(k_relaxed), step, PoolPageTable::k_pages - in.first);
      if (at.is_live_run()) {
        seen.live += std::size_t{step} * k_pool_page_bytes;
        ++seen.live_blocks;
      } else {
        at_hand.add_kept(in.first, step);
      }
    }
    // A run may span adjacent regions.
    in = step < in.count ? SpanOfPages{in.first + step, in.count - step}
                         : grains_from(in.first + step);
  }
  seen.held = std::max(source_.counts().held_bytes(), seen.live + seen.waiting + seen.free);
  seen.cached = seen.held - (seen.live + seen.waiting + seen.free);
  return {seen, at_hand.longest(), at_hand.longest_free()};
}

}  // namespace isthmus
