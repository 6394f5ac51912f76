// SPDX-License-Identifier: Apache-2.0
#pragma once
// A read-only view of the calling thread's caches (`ThreadCache`) of a pool, used to count the
// pool's memory (snapshot.hpp). It reports the memory that the thread's next request could obtain
// from these caches: a request that cannot be served otherwise flushes all of them
// (`PoolCollector::collect_own`).
//
// Used by one thread. Construction costs O(n log n) for n blocks and page runs in the caches. A
// query for a page run or slab costs O(log n), regardless of the number of caches.

#include <array>
#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "memory/pool/central_lists.hpp"
#include "memory/pool/thread_cache.hpp"

namespace isthmus {

// Which requests could reuse memory that is returned to the pool, once the fences that they submit
// have completed.
enum class Readiness : std::uint8_t {
  none,      // no request yet: work on another queue is unfinished
  in_order,  // a request on the queue whose work is unfinished
  any_queue,
};

class OwnCaches {
 public:
  // The next request is assumed to be on the queue on which the thread used the pool last. If the
  // host has no memory for the sorted lists, no page runs and slabs are counted.
  OwnCaches(const ThreadCacheOwner& pool, const CentralLists& central) noexcept;

  // The entry of the queue on which the thread used the pool last; k_no_queue if the thread has no
  // cache of the pool.
  [[nodiscard]] QueueFences::EntryIndex current_entry() const noexcept {
    return last_ != nullptr ? last_->entry : QueueFences::k_no_queue;
  }
  [[nodiscard]] std::size_t cache_count() const noexcept { return count_; }
  [[nodiscard]] Readiness readiness_of(Ticket when) const noexcept {
    return fences_.would_pass(when, all_idle_) ? Readiness::any_queue
           : when.entry() == current_entry()   ? Readiness::in_order
                                               : Readiness::none;
  }
  // The readiness of the page run that begins at page `first`; none if it is not in a cache of this
  // thread.
  [[nodiscard]] Readiness readiness_of_run(std::uint32_t first) const noexcept;
  // The readiness of a slab after a flush of this thread's caches; none unless the slab would then
  // hold all its blocks.
  [[nodiscard]] Readiness readiness_of_slab(const Slab& owner, unsigned size_class) const noexcept;
  // Whether the thread cache that was used last can serve a request of that class.
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
  // Calls visit(cache) if the cache still belongs to the pool and no other thread is revoking it.
  template <class Visit>
  void visit(ThreadCache& cache, Visit&& visit) const noexcept;
  [[nodiscard]] Readiness readiness_of_cache(const ThreadCache& cache) const noexcept;
  // The number of blocks in the thread cache that a flush would return to the slab.
  [[nodiscard]] std::uint32_t blocks_for(const Slab& owner, unsigned size_class,
                                         const ThreadCache& cache) const noexcept;

  const ThreadCacheOwner& pool_;
  QueueFences& fences_;
  const CentralLists& central_;
  const bool all_idle_;  // no queue that tickets wait for has work
  std::array<ThreadCache*, ThreadCache::k_max_own> caches_{};  // the first `count_`
  std::size_t count_;
  ThreadCache* last_ = nullptr;                  // used last by this thread; null: none
  std::vector<CacheEntry<std::uint32_t>> runs_;  // sorted
  std::vector<CacheEntry<const Slab*>> slabs_;   // sorted
};

}  // namespace isthmus
