#pragma once
// What the calling thread keeps of a pool, as the next request of that thread would find it: a
// request that finds nothing else puts all of it back (`pool::settle`). Nothing is changed; for a
// count of the pool's memory (snapshot.hpp).

#include <array>
#include <cstdint>
#include <span>

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
  // The request is one on the queue that the thread used the pool on last.
  own_caches(const pool& of, queue_slots& slots, const central_lists& central) noexcept;

  // Of that queue; k_quiet where this thread keeps nothing for it.
  [[nodiscard]] queue_slots::slot whom() const noexcept {
    return last_ != nullptr ? last_->slot : queue_slots::k_quiet;
  }
  [[nodiscard]] std::size_t lanes() const noexcept { return count_; }
  [[nodiscard]] readiness of(ticket when) const noexcept {
    return slots_.would_pass(when) ? readiness::anybody
           : when.slot() == whom() ? readiness::in_order
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
  // visit(lane) of each of this thread's that still is the pool's, which nobody empties meanwhile.
  template <class Visit>
  void visit(Visit&& visit) const noexcept;
  [[nodiscard]] readiness of_lane(const lane& mine) const noexcept;
  // Those of a lane that would go into the slab.
  [[nodiscard]] std::uint32_t blocks_for(const slab& owner, unsigned size_class,
                                         const lane& mine) const noexcept;

  const pool& pool_;
  queue_slots& slots_;
  const central_lists& central_;
  std::array<lane*, lane::k_most_own> lanes_{};  // the first `count_`
  std::size_t count_;
  lane* last_ = nullptr;  // that this thread used; null: none
};

}  // namespace isthmus
