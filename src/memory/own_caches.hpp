// SPDX-License-Identifier: Apache-2.0
#pragma once
// The contents of the calling thread's caches (`ThreadCache`) of a pool, for counting the pool's
// memory (snapshot.hpp). Reports what the thread's next request could obtain from them: a request
// that finds nothing else flushes them all (`Pool::coalesce`). Changes nothing.
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
  any_queue,
};

class OwnCaches {
 public:
  // The next request is assumed to be on the queue on which the thread used the pool last. If the
  // host has no memory for the sorted lists, no page runs and slabs are counted.
  OwnCaches(const Pool& pool, QueueSlots& slots, const CentralLists& central) noexcept;

  // The entry of that queue; k_no_queue if the thread has no cache of the pool.
  [[nodiscard]] QueueSlots::Slot current_slot() const noexcept {
    return last_ != nullptr ? last_->slot : QueueSlots::k_no_queue;
  }
  [[nodiscard]] std::size_t cache_count() const noexcept { return count_; }
  [[nodiscard]] Readiness readiness_of(Ticket when) const noexcept {
    return slots_.would_pass(when, all_idle_) ? Readiness::any_queue
           : when.slot() == current_slot()    ? Readiness::in_order
                                              : Readiness::none;
  }
  // Of a page run that begins at that page; none if it is in another thread's cache.
  [[nodiscard]] Readiness readiness_of_run(std::uint32_t first) const noexcept;
  // Of a slab; none unless it would then hold all its blocks.
  [[nodiscard]] Readiness readiness_of_slab(const Slab& owner, unsigned size_class) const noexcept;
  // Whether the thread cache alone can serve a request of that class.
  [[nodiscard]] bool has_block(unsigned size_class) const noexcept;

 private:
  [[nodiscard]] std::span<ThreadCache* const> all() const noexcept {
    return std::span{caches_}.first(count_);
  }
  // The thread cache that held a page run which begins at that page, or a block of that slab, when
  // this object was created.
  template <class Key>
  struct CacheEntry {
    Key key;
    ThreadCache* cache;
    friend auto operator<=>(const CacheEntry&, const CacheEntry&) noexcept = default;
  };
  void collect_contents();
  // Calls visit(cache) if it still belongs to the pool and no other thread is revoking it.
  template <class Visit>
  void visit(ThreadCache& cache, Visit&& visit) const noexcept;
  [[nodiscard]] Readiness readiness_of_cache(const ThreadCache& cache) const noexcept;
  // The number of blocks in the thread cache that a flush would return to the slab.
  [[nodiscard]] std::uint32_t blocks_for(const Slab& owner, unsigned size_class,
                                         const ThreadCache& cache) const noexcept;

  const Pool& pool_;
  QueueSlots& slots_;
  const CentralLists& central_;
  const bool all_idle_;  // no queue that tickets wait for has work
  std::array<ThreadCache*, ThreadCache::k_max_own> caches_{};  // the first `count_`
  std::size_t count_;
  ThreadCache* last_ = nullptr;                  // used last by this thread; null: none
  std::vector<CacheEntry<std::uint32_t>> runs_;  // sorted
  std::vector<CacheEntry<const Slab*>> slabs_;   // sorted
};

}  // namespace isthmus
