// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/thread_cache.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "core/hash.hpp"
#include "core/lock_guard.hpp"
#include "core/mutex.hpp"
#include "core/never_destroyed.hpp"
#include "core/owned_by_thread.hpp"
#include "core/thread_safety.hpp"
#include "core/threads.hpp"
#include "core/tls.hpp"
#include "os/process.hpp"
#include "os/process_fence.hpp"
#include "os/virtual_memory.hpp"

namespace isthmus {

constinit ThreadCache detail::no_thread_cache;
constinit bool detail::has_process_fence = false;
thread_local constinit ThreadCache* detail::last_thread_cache = &detail::no_thread_cache;

Mutex& detail::thread_caches_lock() noexcept {
  static NeverDestroyed<Mutex> only;
  return *only;
}

namespace {

using detail::thread_caches_lock;

ThreadCache* spare_thread_caches ISTHMUS_GUARDED_BY(thread_caches_lock()) = nullptr;

// Assigns the threads to shards of the central lists.
class ShardNumbers {
 public:
  [[nodiscard]] unsigned join() noexcept {
    const auto least_used = std::ranges::min_element(threads_);
    ++*least_used;
    return static_cast<unsigned>(least_used - threads_.begin());
  }
  void leave(unsigned shard) noexcept { --threads_[shard]; }

 private:
  std::array<std::uint32_t, CentralLists::k_shards> threads_{};
};
ShardNumbers shards ISTHMUS_GUARDED_BY(thread_caches_lock());

void attach(ThreadCache& cache, ThreadCacheOwner& pool, Queue* key, QueueFences::EntryIndex entry,
            std::uint32_t share) noexcept ISTHMUS_REQUIRES(thread_caches_lock()) {
  cache.entry = entry;
  pool.fences().attach_thread_cache(entry);
  cache.queue = key;
  cache.queue_key = key != nullptr ? key->key() : 0;
  cache.previous = nullptr;
  cache.next = pool.thread_caches();
  if (cache.next != nullptr) {
    cache.next->previous = &cache;
  }
  pool.set_thread_caches(&cache);
  pool.set_bin_capacities(cache, share);
  cache.owner.store(&pool, k_relaxed);
}

void detach(ThreadCache& cache) noexcept ISTHMUS_REQUIRES(thread_caches_lock()) {
  auto& pool = *cache.owner.load(k_relaxed);
  pool.flush(cache);
  pool.fences().detach_thread_cache(cache.entry);
  if (cache.previous != nullptr) {
    cache.previous->next = cache.next;
  } else {
    pool.set_thread_caches(cache.next);
  }
  if (cache.next != nullptr) {
    cache.next->previous = cache.previous;
  }
  cache.owner.store(nullptr, k_relaxed);
}

// Whether the thread cache's queue can no longer be used: only pools still reference the queue.
bool is_dead(const ThreadCache& cache) noexcept {
  return cache.queue != nullptr && cache.queue->pool_references().are_all();
}

ThreadCache* new_thread_cache() noexcept ISTHMUS_REQUIRES(thread_caches_lock()) {
  [[maybe_unused]] static const bool is_armed = detail::has_process_fence =
      os::register_process_fence();
  if (auto* spare = spare_thread_caches; spare != nullptr) {
    spare_thread_caches = spare->next;
    return spare;
  }
  auto pages = os::map_sparse_pages(sizeof(ThreadCache));
  return pages ? new (*pages) ThreadCache : nullptr;
}

// The thread caches of one thread, hashed by pool and queue into sets, so that the time of a search
// does not depend on their number. The most recently used one of a set comes first.
class ThreadCaches {
 public:
  ThreadCaches() noexcept ISTHMUS_REQUIRES(thread_caches_lock()) : shard_{shards.join()} {}

  [[nodiscard]] ThreadCache* find(ThreadCacheOwner& pool, Queue* key) noexcept {
    const auto hashed = hash_of(hash_of(address(&pool)) ^ address(key));
    auto& set = sets_[hashed >> (64 - k_set_bits)];
    auto found = std::find_if(set.begin(), set.end(), [&](const CacheEntry& each) {
      return each.hashed == hashed && each.cache != nullptr && each.cache->serves(pool, key);
    });
    if (found == set.end()) {
      found = std::ranges::find_if(set, &CacheEntry::is_free);
      if (found == set.end()) {
        found = std::prev(found);  // the least recently used one is reused
      }
      if (!serve(found->cache, pool, key)) {
        return nullptr;
      }
      found->hashed = hashed;
    }
    std::rotate(set.begin(), found, std::next(found));
    set.front().cache->found_at = ++finds_;
    return set.front().cache;
  }

  [[nodiscard]] std::size_t collect(const ThreadCacheOwner& pool,
                                    std::span<ThreadCache*> out) noexcept {
    std::size_t found = 0;
    for_each([&](ThreadCache*& each) {
      if (each->owner.load(k_relaxed) == &pool) {
        out[found++] = each;
      }
    });
    return found;
  }

  [[nodiscard]] bool should_flush(const ThreadCacheOwner& pool, std::size_t page_count) noexcept {
    unflushed_pages_ += page_count;
    return unflushed_pages_ >= count(pool) && std::exchange(unflushed_pages_, 0) != 0;
  }

  void flush(ThreadCacheOwner& pool) noexcept {
    for_each([&](ThreadCache*& each) {
      if (each->owner.load(k_relaxed) == &pool) {
        const ThreadCache::Hold held{*each};
        if (held && each->owner.load(k_relaxed) == &pool) {
          pool.flush(*each);
        }
      }
    });
  }

  void release_all() noexcept ISTHMUS_REQUIRES(thread_caches_lock()) {
    for_each([](ThreadCache*& each) {
      thread_caches_lock().assert_held();
      if (each->owner.load(k_relaxed) != nullptr) {
        detach(*each);
      }
      each->next = spare_thread_caches;
      spare_thread_caches = each;
    });
    shards.leave(shard_);
  }

 private:
  static constexpr unsigned k_set_bits = 6;
  static constexpr std::uint32_t k_caches_before_sharing = 16;  // of one pool
  struct CacheEntry {
    std::uint64_t hashed = 0;  // of its pool and queue; if it differs, the cache is not accessed
    ThreadCache* cache = nullptr;

    [[nodiscard]] bool is_free() const noexcept {
      return cache == nullptr || cache->owner.load(k_relaxed) == nullptr;
    }
  };
  using ThreadCacheSet = std::array<CacheEntry, 8>;

  [[nodiscard]] std::uint32_t count(const ThreadCacheOwner& pool) noexcept {
    std::uint32_t found = 0;
    for_each([&](ThreadCache*& each) { found += each->owner.load(k_relaxed) == &pool ? 1U : 0U; });
    return found;
  }

  template <class Visit>
  void for_each(Visit&& visit) noexcept {
    for (auto& set : sets_) {
      for (auto& [hashed, each] : set) {
        if (each != nullptr) {
          visit(each);
        }
      }
    }
  }

  [[nodiscard]] bool serve(ThreadCache*& cache, ThreadCacheOwner& pool, Queue* key) noexcept {
    if (key != nullptr) {
      ThreadCache::reserve_entry_for(pool, *key);
    }
    const auto entry = pool.fences().find(key);
    if (entry == QueueFences::k_no_queue && key != nullptr) {
      return false;  // the queue is no longer in order, or no free entry is left
    }
    const LockGuard hold{thread_caches_lock()};
    if (cache == nullptr) {
      cache = take_idle();
    }
    if (cache == nullptr) {
      cache = new_thread_cache();
    }
    if (cache == nullptr) {
      return false;
    }
    if (cache->owner.load(k_relaxed) != nullptr) {
      detach(*cache);
    }
    cache->shard = shard_;
    attach(*cache, pool, key, entry, 1 + count(pool) / k_caches_before_sharing);
    return true;
  }

  // Takes a thread cache of a destroyed pool or an unused queue, so that no more exist than were
  // used at once.
  [[nodiscard]] ThreadCache* take_idle() noexcept {
    ThreadCache* idle = nullptr;
    for_each([&](ThreadCache*& each) {
      if (idle == nullptr && (each->owner.load(k_relaxed) == nullptr || is_dead(*each))) {
        idle = std::exchange(each, nullptr);
      }
    });
    return idle;
  }

  const unsigned shard_;
  std::size_t unflushed_pages_ = 0;
  std::uint64_t finds_ = 0;
  std::array<ThreadCacheSet, std::size_t{1} << k_set_bits> sets_{};
  static_assert(sizeof sets_ / sizeof(CacheEntry) == ThreadCache::k_max_own);
};

// On separate pages, since static thread-local storage is small.
struct MappedThreadCaches {
  ThreadCaches* caches = nullptr;

  MappedThreadCaches() noexcept = default;
  MappedThreadCaches(const MappedThreadCaches&) = delete;
  MappedThreadCaches& operator=(const MappedThreadCaches&) = delete;
  ~MappedThreadCaches() {
    detail::last_thread_cache = &detail::no_thread_cache;
    if (caches == nullptr || os::is_forked_child()) {
      return;  // threads that do not exist here may hold the locks
    }
    {
      const LockGuard hold{thread_caches_lock()};
      caches->release_all();
    }
    os::unmap_pages(caches, sizeof(ThreadCaches));
  }
};
ISTHMUS_TLS_MODEL thread_local constinit OwnedByThread<MappedThreadCaches> own_thread_caches;

ThreadCaches* find_own_thread_caches() noexcept {
  const auto* mapped = own_thread_caches.find();
  return mapped != nullptr ? mapped->caches : nullptr;
}

// Null if there is no memory, and when the thread is ending.
ThreadCaches* make_own_thread_caches() noexcept {
  auto* const mapped = own_thread_caches.get();
  if (mapped != nullptr && mapped->caches == nullptr) {
    if (auto pages = os::map_sparse_pages(sizeof(ThreadCaches))) {
      const LockGuard hold{thread_caches_lock()};
      mapped->caches = new (*pages) ThreadCaches;
    }
  }
  return mapped != nullptr ? mapped->caches : nullptr;
}

}  // namespace

ThreadCache* ThreadCache::find(ThreadCacheOwner& pool, Queue* key) noexcept {
  auto* const own = on_library_thread() ? nullptr : make_own_thread_caches();
  auto* const found = own != nullptr ? own->find(pool, key) : nullptr;
  if (found != nullptr) {
    detail::last_thread_cache = found;
  }
  return found;
}

void* ThreadCache::take_run(std::size_t nbytes, std::uintptr_t key, PoolPageTable& table) noexcept {
  const auto page_count = pool_pages_for(nbytes);
  const Hold held{*this};
  for (std::size_t distance = 0; held && distance < k_runs; ++distance) {
    auto& run = runs[(newest - distance) % k_runs];
    if (run.count == page_count) {
      return allocate_run(run, nbytes, key, table);
    }
  }
  return nullptr;
}

void* ThreadCache::take_block(unsigned size_class) noexcept {
  const Hold held{*this};
  auto& bin = bins[size_class];
  return held && bin.count != 0 ? bin.blocks[--bin.count] : nullptr;
}

std::size_t ThreadCache::keep_blocks(unsigned size_class, std::span<void* const> blocks) noexcept {
  const Hold held{*this};
  auto& bin = bins[size_class];
  if (!held) {
    return 0;
  }
  const auto count = std::min<std::size_t>(blocks.size(), bin.capacity - bin.count);
  std::copy_n(blocks.begin(), count, bin.blocks.begin() + bin.count);
  bin.count += static_cast<std::uint32_t>(count);
  return count;
}

std::size_t ThreadCache::next_refill(unsigned size_class) noexcept {
  const Hold held{*this};
  auto& bin = bins[size_class];
  return held ? std::exchange(bin.refill_count, std::min(2 * bin.refill_count, bin.capacity / 2))
              : 1;
}

bool ThreadCache::should_flush_own(const ThreadCacheOwner& pool, std::size_t page_count) noexcept {
  auto* const own = find_own_thread_caches();
  return own == nullptr || own->should_flush(pool, page_count);
}

void ThreadCache::flush_own(ThreadCacheOwner& pool) noexcept {
  auto* const own = find_own_thread_caches();
  if (own != nullptr && !on_library_thread()) {
    own->flush(pool);
  }
}

std::size_t ThreadCache::find_own(const ThreadCacheOwner& pool,
                                  std::span<ThreadCache*, k_max_own> out) noexcept {
  auto* const own = on_library_thread() ? nullptr : find_own_thread_caches();
  return own != nullptr ? own->collect(pool, out) : 0;
}

// Whether the owner has used the thread cache since the last call.
bool ThreadCache::was_used_recently() noexcept {
  auto use = Use::recent;
  return use_.compare_exchange_strong(use, Use::none, std::memory_order_acq_rel) ||
         use != Use::none;
}

// The wait is bounded: the owner may be preempted while it accesses its thread cache.
bool ThreadCache::is_idle(Revoked scope) const noexcept {
  constexpr int k_max_tries = 100;
  auto use = use_.load(std::memory_order_seq_cst);
  for (int tries = 0; scope == Revoked::all && use == Use::active && tries < k_max_tries; ++tries) {
    std::this_thread::yield();
    use = use_.load(std::memory_order_seq_cst);
  }
  return scope == Revoked::all ? use != Use::active : use == Use::none;
}

template <class Choose>
void ThreadCache::flush_some(ThreadCacheOwner& pool, Revoked scope, Choose&& choose) noexcept {
  bool any = false;
  for (auto* each = pool.thread_caches(); each != nullptr; each = each->next) {
    if (choose(*each)) {
      each->is_being_revoked_.store(true, std::memory_order_seq_cst);
      any = true;
    }
  }
  // Without a fence the owner may be accessing its thread cache without this thread seeing it.
  const bool is_fenced = !any || !detail::has_process_fence || os::process_fence();
  for (auto *each = pool.thread_caches(), *after = each; any && each != nullptr; each = after) {
    after = each->next;
    if (each->is_being_revoked_.load(k_relaxed)) {
      if (is_fenced && each->is_idle(scope)) {
        is_dead(*each) ? detach(*each) : pool.flush(*each);
      }
      each->is_being_revoked_.store(false, std::memory_order_release);
    }
  }
}

void ThreadCache::revoke(ThreadCacheOwner& pool, Revoked scope) noexcept {
  const LockGuard hold{thread_caches_lock()};
  flush_some(pool, scope, [scope](ThreadCache& each) {
    return scope == Revoked::all || !each.was_used_recently();
  });
}

void ThreadCache::reserve_entry_for(ThreadCacheOwner& pool, Queue& queue) noexcept {
  if (!pool.fences().has_entry_for(queue)) {
    const LockGuard hold{thread_caches_lock()};
    flush_some(pool, Revoked::all, [](ThreadCache& each) { return is_dead(each); });
  }
}

void ThreadCache::detach_all(ThreadCacheOwner& pool) noexcept {
  const LockGuard hold{thread_caches_lock()};
  while (pool.thread_caches() != nullptr) {
    detach(*pool.thread_caches());
  }
}

}  // namespace isthmus
