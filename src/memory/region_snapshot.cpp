// What a region heap's memory is used for, counted.

#include <algorithm>

#include "memory/region_heap.hpp"
#include "memory/slab.hpp"

namespace isthmus {

// The free run that begins there now, and whether no work is left on it; none if none begins there.
std::optional<region_heap::free_run> region_heap::free_run_at(index first) const noexcept {
  const auto& at = (*table_)[first];
  const auto is_free = [&at] { return at.is.load(k_relaxed) == grain::state::free_head; };
  if (!is_free()) {
    return std::nullopt;
  }
  const std::lock_guard hold{lock_};
  return is_free() ? std::optional{free_run{runs_.length_of(first),
                                            slots_.passed(runs_.ticket_of(first))}}
                   : std::nullopt;
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

// Grains of chunks that lie in [first, end) as a whole.
region_heap::index region_heap::whole_chunks_in(index first, index end) const noexcept {
  index found = 0;
  const std::lock_guard hold{lock_};
  auto each = std::lower_bound(regions_.begin(), regions_.end(), first,
                               [](const region& in, index wanted) { return in.first < wanted; });
  for (; each != regions_.end() && each->first + each->count <= end; ++each) {
    found += each->count;
  }
  return found;
}

std::size_t region_heap::live_blocks_in(slab& in) const noexcept {
  return table_->common().knows_live.load(k_relaxed) ? in.count_live() : in.blocks;
}

// A stretch of grains that no caller has serves one request once caches are flushed and neighbours
// are joined. Where chunks move, all whole chunks of such stretches serve one together.
class region_heap::stretches {
 public:
  explicit stretches(const region_heap& of) noexcept : of_{of} {}
  void add(index first, index count) noexcept {
    if (first != end_) {
      close();
      begin_ = first;
    }
    end_ = first + count;
    longest_ = std::max(longest_, end_ - begin_);
  }
  // In bytes.
  [[nodiscard]] std::size_t largest_request() noexcept {
    close();
    return std::size_t{std::max(longest_, movable_)} * k_grain_bytes;
  }

 private:
  void close() noexcept {
    movable_ += of_.source_.moves() ? of_.whole_chunks_in(begin_, end_) : 0;
    begin_ = end_;
  }

  const region_heap& of_;
  index begin_ = 0;
  index end_ = 0;
  index longest_ = 0;
  index movable_ = 0;
};

// Reads every run and slab, and holds the lock for one free run, or for the regions of one stretch:
// it may take milliseconds.
snapshot region_heap::count() const {
  snapshot seen;
  stretches without_callers{*this};
  const slab* last = nullptr;
  for (auto in = grains_from(1); in.count != 0;) {
    auto& at = (*table_)[in.first];
    index step = 1;
    auto* owner = at.is_slab() ? at.in_slab(std::memory_order_acquire) : nullptr;
    if (owner != nullptr && owner != last) {
      const auto blocks = live_blocks_in(*owner);
      seen.live += blocks * owner->block_bytes;
      seen.live_blocks += blocks;
      last = owner;
    } else if (const auto free = free_run_at(in.first)) {
      step = free->count;
      const auto nbytes = std::size_t{step} * k_grain_bytes;
      (free->passed ? seen.free : seen.waiting) += nbytes;
      if (free->passed) {
        seen.largest_free = std::max(seen.largest_free, nbytes);
        without_callers.add(in.first, step);
      }
    } else if (at.begins_run()) {
      step = std::clamp(at.span.load(k_relaxed), step, grain_table::k_grains - in.first);
      if (at.is_live_run()) {
        seen.live += std::size_t{step} * k_grain_bytes;
        ++seen.live_blocks;
      } else {
        without_callers.add(in.first, step);
      }
    }
    // A run goes over the borders of regions that lie side by side.
    in = step < in.count ? span_of_grains{in.first + step, in.count - step}
                         : grains_from(in.first + step);
  }
  seen.held = std::max(source_.counts().held_bytes(), seen.live + seen.waiting + seen.free);
  seen.largest_request = std::max(seen.largest_free, without_callers.largest_request());
  seen.cached = seen.held - (seen.live + seen.waiting + seen.free);
  return seen;
}

}  // namespace isthmus
