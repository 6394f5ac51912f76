// SPDX-License-Identifier: Apache-2.0
#pragma once
// The contents of the calling thread's caches (`lane`) of a pool, for counting the pool's memory
// (snapshot.hpp). Reports what the thread's next request could obtain from them: a request that
// finds nothing else flushes them all (`Pool::settle`). Changes nothing.
//
// Used by one thread. Costs: n log n once, for n blocks and page runs in the caches, then log n for
// each page run or slab that is queried, regardless of the number of caches.

#include <array>
#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "memory/central_lists.hpp"
#include "memory/thread_cache.hpp"

namespace isthmus {

// Who could reuse memory that is returned to the pool, once the fences that a request submits have
// completed.
enum class Readiness : std::uint8_t {
  none,      // no request yet: work on another queue is unfinished
  in_order,  // a request on the queue whose work is unfinished
  anybody,
};

class OwnCaches {
 public:
  // The next request is assumed to be on the queue on which the thread used the pool last. If the
  // host has no memory for the sorted lists, no page runs and slabs are counted.
  OwnCaches(const Pool& pool, QueueSlots& slots, const CentralLists& central) noexcept;

  // The entry of that queue; k_quiet if the thread has no cache of the pool.
  [[nodiscard]] QueueSlots::Slot whom() const noexcept {
    return last_ != nullptr ? last_->slot : QueueSlots::k_quiet;
  }
  [[nodiscard]] std::size_t lanes() const noexcept { return count_; }
  [[nodiscard]] Readiness of(Ticket when) const noexcept {
    return slots_.would_pass(when, all_idle_) ? Readiness::anybody
           : when.slot() == whom()            ? Readiness::in_order
                                              : Readiness::none;
  }
  // Of a page run that begins at that page; none if it is in another thread's cache.
  [[nodiscard]] Readiness of_run(std::uint32_t first) const noexcept;
  // Of a slab; none if it would not have all its blocks back.
  [[nodiscard]] Readiness of_slab(const Slab& owner, unsigned size_class) const noexcept;
  // Whether the thread cache alone can serve a request of that class.
  [[nodiscard]] bool has_block(unsigned size_class) const noexcept;

 private:
  [[nodiscard]] std::span<ThreadCache* const> all() const noexcept {
    return std::span{lanes_}.first(count_);
  }
  // The thread cache that had a page run which begins at that page, or a block of that slab, when
  // this object was created.
  template <class Key>
  struct Kept {
    Key what;
    ThreadCache* by;
    friend auto operator<=>(const Kept&, const Kept&) noexcept = default;
  };
  void find_kept();
  // Calls visit(lane) if it still belongs to the pool and no other thread is revoking it.
  template <class Visit>
  void visit(ThreadCache& mine, Visit&& visit) const noexcept;
  [[nodiscard]] Readiness of_lane(const ThreadCache& mine) const noexcept;
  // The number of blocks in the thread cache that a flush would return to the slab.
  [[nodiscard]] std::uint32_t blocks_for(const Slab& owner, unsigned size_class,
                                         const ThreadCache& mine) const noexcept;

  const Pool& pool_;
  QueueSlots& slots_;
  const CentralLists& central_;
  const bool all_idle_;  // no queue that tickets wait for has work
  std::array<ThreadCache*, ThreadCache::k_most_own> lanes_{};  // the first `count_`
  std::size_t count_;
  ThreadCache* last_ = nullptr;            // used last by this thread; null: it has none
  std::vector<Kept<std::uint32_t>> runs_;  // sorted
  std::vector<Kept<const Slab*>> slabs_;   // sorted
};

}  // namespace isthmus
