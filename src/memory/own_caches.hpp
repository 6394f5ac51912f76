#pragma once
// What the calling thread keeps of a pool, as the next request of that thread would find it: a
// request that finds nothing else puts all of it back (`pool::settle`). Nothing is changed; for a
// count of the pool's memory (snapshot.hpp).
//
// Costs: n log n for n blocks and runs that the thread keeps, once, and log n for each run or slab
// that is asked about, however many lanes there are.

#include <array>
#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "memory/central_lists.hpp"
#include "memory/lane.hpp"

namespace isthmus {

// Who could have memory that is put back, once the fences that a request submits have passed.
enum class readiness : std::uint8_t {
  none,      // nobody yet: work is left on another queue
  in_order,  // a request on the queue whose work is left
  anybody,
};

class own_caches {
 public:
  // The request is one on the queue that the thread used the pool on last. Where the host has no
  // memory to sort them, none of the runs and slabs counts.
  own_caches(const pool& of, queue_slots& slots, const central_lists& central) noexcept;

  // Of that queue; k_quiet where this thread keeps nothing for it.
  [[nodiscard]] queue_slots::slot whom() const noexcept {
    return last_ != nullptr ? last_->slot : queue_slots::k_quiet;
  }
  [[nodiscard]] std::size_t lanes() const noexcept { return count_; }
  [[nodiscard]] readiness of(ticket when) const noexcept {
    return slots_.would_pass(when, all_idle_) ? readiness::anybody
           : when.slot() == whom()            ? readiness::in_order
                                              : readiness::none;
  }
  // Of a run that begins at that grain; none where another thread keeps it.
  [[nodiscard]] readiness of_run(std::uint32_t first) const noexcept;
  // Of a slab; none where it would not have all its blocks.
  [[nodiscard]] readiness of_slab(const slab& owner, unsigned size_class) const noexcept;
  // Whether a request of that class is served without a look elsewhere.
  [[nodiscard]] bool has_block(unsigned size_class) const noexcept;

 private:
  [[nodiscard]] std::span<lane* const> all() const noexcept {
    return std::span{lanes_}.first(count_);
  }
  // Which lane has a run that begins at that grain, or a block of that slab, or had it when this
  // was made.
  template <class Key>
  struct kept {
    Key what;
    lane* by;
    friend auto operator<=>(const kept&, const kept&) noexcept = default;
  };
  void find_kept();
  // visit(lane) if it still is the pool's, and nobody empties it meanwhile.
  template <class Visit>
  void visit(lane& mine, Visit&& visit) const noexcept;
  [[nodiscard]] readiness of_lane(const lane& mine) const noexcept;
  // Those of a lane that would go into the slab.
  [[nodiscard]] std::uint32_t blocks_for(const slab& owner, unsigned size_class,
                                         const lane& mine) const noexcept;

  const pool& pool_;
  queue_slots& slots_;
  const central_lists& central_;
  const bool all_idle_;                          // of the queues that the pool waits for
  std::array<lane*, lane::k_most_own> lanes_{};  // the first `count_`
  std::size_t count_;
  lane* last_ = nullptr;                   // that this thread used; null: none
  std::vector<kept<std::uint32_t>> runs_;  // sorted, as the next
  std::vector<kept<const slab*>> slabs_;
};

}  // namespace isthmus
