// What a region heap's memory is used for, counted.

#include <algorithm>

#include "memory/region_heap.hpp"
#include "memory/slab.hpp"

namespace isthmus {

// Of free runs, under the lock.
void region_heap::count_free(snapshot& seen) const {
  const std::lock_guard hold{lock_};
  seen.held = source_.counts().held_bytes();
  runs_.visit_free(1, [&](index, index count, ticket until) {
    const auto nbytes = std::size_t{count} * k_grain_bytes;
    if (slots_.passed(until)) {
      seen.free += nbytes;
      seen.largest_free = std::max(seen.largest_free, nbytes);
    } else {
      seen.waiting += nbytes;
    }
  });
}

// The grains from `number` on that lie in one region; none if there is no more.
region_heap::span_of_grains region_heap::grains_from(index number) const noexcept {
  const std::lock_guard hold{lock_};
  const auto found = std::upper_bound(
      regions_.begin(), regions_.end(), number,
      [](index wanted, const region& each) { return wanted < each.first + each.count; });
  if (found == regions_.end()) {
    return {};
  }
  const auto first = std::max(number, found->first);
  return {first, found->first + found->count - first};
}

std::size_t region_heap::live_in(slab& in) const noexcept {
  if (!table_->common().knows_live.load(k_relaxed)) {
    return std::size_t{in.blocks} * in.block_bytes;
  }
  return in.count_live() * in.block_bytes;
}

// Looks at every run and slab, without the lock: it may take milliseconds.
snapshot region_heap::count() const {
  snapshot seen;
  count_free(seen);
  const slab* last = nullptr;
  for (auto in = grains_from(1); in.count != 0;) {
    auto& at = (*table_)[in.first];
    index step = 1;
    auto* owner = at.is_slab() ? at.in_slab(std::memory_order_acquire) : nullptr;
    if (owner != nullptr && owner != last) {
      seen.live += live_in(*owner);
      last = owner;
    } else if (at.begins_run() || at.is.load(k_relaxed) == grain::state::free_head) {
      step = std::clamp(at.span.load(k_relaxed), step, grain_table::k_grains - in.first);
      seen.live += at.is_live_run() ? std::size_t{step} * k_grain_bytes : 0;
    }
    // A run goes over the borders of regions that lie side by side.
    in = step < in.count ? span_of_grains{in.first + step, in.count - step}
                         : grains_from(in.first + step);
  }
  seen.cached = seen.held - std::min(seen.held, seen.live + seen.waiting + seen.free);
  return seen;
}

}  // namespace isthmus
