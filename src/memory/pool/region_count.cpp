// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/region_count.hpp"

#include <algorithm>

#include "core/lock_guard.hpp"
#include "memory/pool/unused_regions.hpp"

namespace isthmus {
namespace {

void add_free(Snapshot& snapshot, std::size_t nbytes, bool passed) noexcept {
  (passed ? snapshot.free : snapshot.waiting) += nbytes;
  snapshot.largest_free = std::max(snapshot.largest_free, passed ? nbytes : 0);
}

}  // namespace

std::optional<RegionCount::FreeRun> RegionCount::free_run_at(Index first) const noexcept {
  const auto& page = heap_.table()[first];
  const auto is_free = [&page] { return page.state.load(k_relaxed) == PoolPage::State::free_head; };
  if (!is_free()) {
    return std::nullopt;
  }
  const LockGuard hold{heap_.lock_};
  return is_free()
             ? std::optional{FreeRun{heap_.runs_.length_of(first), heap_.runs_.ticket_of(first)}}
             : std::nullopt;
}

RegionCount::PageSpan RegionCount::pages_from(Index number) const noexcept {
  const LockGuard hold{heap_.lock_};
  const auto found = heap_.regions_.find_from(number);
  if (found == heap_.regions_.end()) {
    return {};
  }
  const auto first = std::max(number, found->first);
  return {first, found->first + found->count - first};
}

RegionCount::Index RegionCount::movable_in(Index first, Index end) const noexcept {
  Index found = 0;
  while (first < end) {
    const auto [next, count] = some_movable_in(first, end);
    found += count;
    first = next;
  }
  return found;
}

std::pair<RegionCount::Index, RegionCount::Index> RegionCount::some_movable_in(
    Index first, Index end) const noexcept {
  constexpr int k_max_regions = 64;
  Index found = 0;
  const LockGuard hold{heap_.lock_};
  const auto& regions = heap_.regions_;
  auto each = regions.find_from(first);
  for (int visited = 0; each != regions.end() && each->first < end; ++each, ++visited) {
    if (visited == k_max_regions) {
      return {each->first, found};
    }
    const auto part = std::min(end, each->first + each->count) - std::max(first, each->first);
    const bool can_move =
        heap_.source_.divides() ? part >= UnusedRegions::k_min_part : part == each->count;
    found += can_move ? part : 0;
  }
  return {end, found};
}

RegionCount::Index RegionCount::max_movable(Index movable) const noexcept {
  const auto& source = heap_.source_;
  const auto soft_limit = source.sizes().soft_limit_bytes;
  const auto available = soft_limit - std::min(soft_limit, source.counts().held_bytes());
  return static_cast<Index>(std::min<std::size_t>(movable, available / k_pool_page_bytes));
}

std::size_t RegionCount::live_blocks_in(Slab& slab) const noexcept {
  return has_live_marks() ? slab.count_live() : slab.blocks;
}

// Determines the longest runs that a request could obtain. A stretch of pages that no caller holds
// can serve one request, once the thread's caches are flushed and neighbours are joined. Where
// chunks move, the chunks of all stretches together can serve one request.
class RegionCount::Stretches {
 public:
  explicit Stretches(const RegionCount& count) noexcept
      : count_{count}, caches_{count.caches_}, source_{count.heap_.source_} {}
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
    return std::max(all_.longest, count_.max_movable(movable_));
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
    if (source_.moves() && (readiness == Readiness::any_queue || source_.moves_in_order())) {
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
    movable_ += moving_.end != 0 ? count_.movable_in(moving_.begin, moving_.end) : 0;
    moving_ = {};
  }

  const RegionCount& count_;
  const OwnCaches* const caches_;
  const RegionSource& source_;
  Row all_;
  Row free_;
  Row moving_;
  Index movable_ = 0;
};

// `last` is the last slab that was counted, since all its pages lead to it.
RegionCount::Index RegionCount::count_at(Index first, Snapshot& snapshot, Stretches& stretches,
                                         const Slab*& last) const noexcept {
  auto& page = heap_.table()[first];
  auto* owner = page.is_slab() ? page.in_slab(std::memory_order_acquire) : nullptr;
  if (owner != nullptr && owner != last) {
    const auto blocks = live_blocks_in(*owner);
    snapshot.live += blocks * owner->block_bytes;
    snapshot.live_blocks += blocks;
    if (blocks == 0 || !has_live_marks()) {
      stretches.add_slab(first, *owner, page.span.load(k_relaxed));
    }
    last = owner;
  } else if (const auto free = free_run_at(first)) {
    add_free(snapshot, std::size_t{free->count} * k_pool_page_bytes,
             heap_.fences_.passed(free->until));
    stretches.add_free(first, free->count, free->until);
    return free->count;
  } else if (page.begins_run()) {
    const auto count =
        std::clamp(page.span.load(k_relaxed), Index{1}, PoolPageTable::k_pages - first);
    if (page.is_live_run()) {
      snapshot.live += std::size_t{count} * k_pool_page_bytes;
      ++snapshot.live_blocks;
    } else {
      stretches.add_cached(first, count);
    }
    return count;
  }
  return 1;
}

CountedRuns RegionCount::count() const {
  Snapshot snapshot;
  Stretches stretches{*this};
  const Slab* last = nullptr;
  for (auto span = pages_from(1); span.count != 0;) {
    const auto step = count_at(span.first, snapshot, stretches, last);
    // A run may span adjacent regions.
    span = step < span.count ? PageSpan{span.first + step, span.count - step}
                             : pages_from(span.first + step);
  }
  snapshot.held = std::max(heap_.source_.counts().held_bytes(),
                           snapshot.live + snapshot.waiting + snapshot.free);
  snapshot.cached = snapshot.held - (snapshot.live + snapshot.waiting + snapshot.free);
  return {snapshot, stretches.longest(), stretches.longest_free()};
}

}  // namespace isthmus
