// SPDX-License-Identifier: Apache-2.0
#pragma once
// The thread cache: free blocks and page runs of one pool that one thread caches for one queue, so
// that warm allocations and frees take no lock and share no cache line. The memory in it is unused,
// or was freed after work on that queue.
//
// A thread finds its last thread cache through one pointer in static thread-local storage, where
// available (core/tls.hpp; the general model costs 4.6 ns for an allocation with its free). If that
// thread cache serves another pool or queue, the thread searches its other ones. Thread caches are
// never unmapped. That of an ended thread is reused when another thread needs a new one. That of a
// destroyed pool is empty, and its thread reuses it for another pool.
//
// Memory that a thread caches without using it would be lost to other threads. Therefore another
// thread can revoke a thread cache, that is, flush it. The owner marks its accesses
// (`ThreadCache::Hold`) with plain stores; the revoking thread pays for the memory fences of both
// (os/process_fence.hpp).
//
// A thread cache is accessed by its thread, during a successful `Hold`, or by another thread under
// `detail::thread_caches_lock()` after the handshake described at `use_`. A pool that is
// being destroyed needs no handshake, since no thread uses it.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "core/expects.hpp"
#include "core/mutex.hpp"
#include "core/thread_safety.hpp"
#include "core/tls.hpp"
#include "memory/pool/central_lists.hpp"
#include "memory/pool/pool_page_table.hpp"
#include "memory/pool/size_class.hpp"

namespace isthmus {

class ThreadCache;

namespace detail {
// Guards the assignment of thread caches to pools, and the list of spare ones. Held while a thread
// cache is emptied, so that its pool is not destroyed meanwhile; never held during a driver call.
[[nodiscard]] Mutex& thread_caches_lock() noexcept;
}  // namespace detail

// The part of a pool that its thread caches use.
class ThreadCacheOwner {
 public:
  ThreadCacheOwner(const ThreadCacheOwner&) = delete;
  ThreadCacheOwner& operator=(const ThreadCacheOwner&) = delete;

  [[nodiscard]] QueueFences& fences() const noexcept { return *fences_; }
  // The first of its thread caches.
  [[nodiscard]] ThreadCache* thread_caches() const noexcept
      ISTHMUS_REQUIRES(detail::thread_caches_lock()) {
    return thread_caches_;
  }
  void set_thread_caches(ThreadCache* first) noexcept
      ISTHMUS_REQUIRES(detail::thread_caches_lock()) {
    thread_caches_ = first;
  }
  // Sets the capacity of the bins of a thread cache to 1 / `share` of the capacity in a thread's
  // only cache.
  virtual void set_bin_capacities(ThreadCache& cache, std::uint32_t share) const noexcept = 0;
  // Moves the content of a thread cache to the central lists.
  virtual void flush(ThreadCache& cache) noexcept = 0;

 protected:
  explicit ThreadCacheOwner(Ref<QueueFences> fences) noexcept : fences_{std::move(fences)} {}
  ~ThreadCacheOwner() = default;

 private:
  const Ref<QueueFences> fences_;
  ThreadCache* thread_caches_ ISTHMUS_GUARDED_BY(detail::thread_caches_lock()) = nullptr;
};

class ThreadCache {
 public:
  // The last blocks of one size class that the thread freed or obtained from the central list.
  struct Bin {
    static constexpr std::uint32_t k_max_blocks = 2 * CentralShard::k_max_batch_blocks;
    std::uint32_t count = 0;
    std::uint32_t capacity = 0;
    std::uint32_t refill_count = 0;  // blocks to obtain with the next refill
    std::array<void*, k_max_blocks> blocks{};

    void reset_refill() noexcept { refill_count = std::max(capacity / 16, 1U); }
    // The capacity in a thread's only cache of a pool: two batches, and at most 2 MiB. A larger
    // batch costs less per block when blocks move between threads. Blocks above 4 KiB get smaller
    // batches, since one thread would otherwise cache too much memory.
    [[nodiscard]] static constexpr std::uint32_t max_count(std::size_t block_bytes) noexcept {
      constexpr std::size_t k_max_bytes = std::size_t{2} << 20;
      const auto limit = block_bytes <= 4096 ? k_max_blocks : k_max_blocks / 2;
      return static_cast<std::uint32_t>(
          std::clamp<std::size_t>(k_max_bytes / block_bytes, 2, limit));
    }
  };
  struct PageRun {
    std::byte* base = nullptr;
    std::uint32_t first = 0;  // its first page
    std::uint32_t count = 0;  // pages; 0: none
  };
  static constexpr std::size_t k_runs = 16;
  static constexpr std::size_t k_max_cached_pages = 1024;  // 64 MiB, or a single run

  // The calling thread's thread cache of `pool` for a key (`thread_cache_key`), created if
  // necessary. Null if there is no memory or no entry in `QueueFences`, if the thread is ending, or
  // on a thread of the library, which frees but does not allocate.
  [[nodiscard]] static ThreadCache* find(ThreadCacheOwner& pool, Queue* key) noexcept;
  // Moves the memory of the pool in the calling thread's caches to the pool's central lists.
  static void flush_own(ThreadCacheOwner& pool) noexcept;
  // Adds `page_count` to the pages that this thread has requested, of any pool, since this last
  // returned true. Returns whether they justify flushing all its thread caches of this pool: at
  // least one page for each.
  [[nodiscard]] static bool should_flush_own(const ThreadCacheOwner& pool,
                                             std::size_t page_count) noexcept;
  // As `flush_own` for all threads, or only for thread caches that were not used since the last
  // such call. A thread cache that is in constant use may retain its content, and every thread
  // cache may, if the kernel no longer allows the fence.
  enum class Revoked { idle, all };
  static void revoke(ThreadCacheOwner& pool, Revoked scope) noexcept;
  // Stores this thread's thread caches of a pool in `out`. Returns their number.
  static constexpr std::size_t k_max_own = 512;
  [[nodiscard]] static std::size_t find_own(const ThreadCacheOwner& pool,
                                            std::span<ThreadCache*, k_max_own> out) noexcept;
  // Empties the thread caches of a pool that is being destroyed, and detaches them from it.
  static void detach_all(ThreadCacheOwner& pool) noexcept;
  // If all queue entries of the pool are in use, detaches the thread caches of queues that only
  // pools still reference, so that `queue` can reuse one of their entries.
  static void reserve_entry_for(ThreadCacheOwner& pool, Queue& queue) noexcept;

  class Hold;

  // Takes one of the cached blocks of a class; null if there is none.
  [[nodiscard]] void* take_block(unsigned size_class) noexcept;
  // The number of blocks of a class to obtain from the central list: few at first, then twice as
  // many each time, up to half a bin. A thread with many thread caches that needs little of each
  // thus caches little.
  [[nodiscard]] std::size_t next_refill(unsigned size_class) noexcept;
  // Caches as many of the blocks as the bin has space for. Returns their number.
  [[nodiscard]] std::size_t keep_blocks(unsigned size_class,
                                        std::span<void* const> blocks) noexcept;
  // Takes the most recently cached run with as many pages as the request needs, and makes it live;
  // null if there is none. `key` is the key of the requesting queue, since a thread cache without a
  // queue serves several.
  [[nodiscard]] void* take_run(std::size_t nbytes, std::uintptr_t key,
                               PoolPageTable& table) noexcept;

  // As `take_run`, for the most recently cached run only. The caller has a `Hold`.
  [[nodiscard]] void* take_last_run(std::size_t nbytes, PoolPageTable& table) noexcept;
  // Caches the live run that begins at `base`. Returns false if there is no space, or no live run
  // begins at that address. The caller has a `Hold`.
  [[nodiscard]] bool keep_run(PoolPage& first, std::byte* base, PoolPageTable& table) noexcept;

  // Whether the thread cache belongs to this pool and queue. The entry in `QueueFences` keeps the
  // queue alive, so no other queue can have its address.
  [[nodiscard]] bool serves(const ThreadCacheOwner& pool, const Queue* key) const noexcept {
    return owner.load(k_relaxed) == &pool && queue == key;
  }

 private:  // here, beside the fields that are read with them
  // Handshake between the owner and a revoking thread. Each writes one flag and then reads the
  // other one: the owner `use_` and `is_being_revoked_`, the revoking thread the reverse. A fence
  // lies between the two steps, so at least one of them sees the other's flag: the owner then does
  // not use the thread cache, or the revoking thread skips it. The fences are `process_fence` by
  // the revoking thread, with a compiler fence in the owner; without a process fence, a seq_cst
  // exchange in the owner. The owner ends with a release store of `recent`, the revoking thread
  // with a release store of false, so that each sees what the other one changed.
  //
  // `none`: not used since a revoking thread last checked; `active`: the owner is accessing it;
  // `recent`: the owner has accessed it since.
  enum class Use : std::uint8_t { none, active, recent };
  // Written by the owner; other threads only reset `recent`.
  std::atomic<Use> use_{Use::none};
  std::atomic<bool> is_being_revoked_{false};

 public:
  std::atomic<ThreadCacheOwner*> owner{nullptr};
  // Its queue. Only the owner accesses this and the fields below, except the links, which the lock
  // of the thread caches guards.
  Queue* queue = nullptr;
  std::uintptr_t queue_key = 0;  // of `queue`
  QueueFences::EntryIndex entry = QueueFences::k_no_queue;
  unsigned shard = 0;          // the thread's shard of the pool's central lists
  std::uint64_t found_at = 0;  // number of the thread's last search that found it; only grows
  // In the pool's list or that of spare ones.
  ThreadCache* next ISTHMUS_GUARDED_BY(detail::thread_caches_lock()) = nullptr;
  ThreadCache* previous ISTHMUS_GUARDED_BY(detail::thread_caches_lock()) = nullptr;
  std::size_t cached_pages = 0;
  std::uint32_t newest = 0;
  std::array<PageRun, k_runs> runs{};
  std::array<Bin, SizeClasses::k_max_count> bins{};

 private:
  // Allocates a cached run.
  [[nodiscard]] void* allocate_run(PageRun& run, std::size_t nbytes, std::uintptr_t key,
                                   PoolPageTable& table) noexcept;
  [[nodiscard]] bool was_used_recently() noexcept;
  [[nodiscard]] bool is_idle(Revoked scope) const noexcept;
  template <class Choose>
  static void flush_some(ThreadCacheOwner& pool, Revoked scope, Choose&& choose) noexcept
      ISTHMUS_REQUIRES(detail::thread_caches_lock());
};

namespace detail {
// Belongs to no pool: stands for "no thread cache yet".
extern constinit ThreadCache no_thread_cache;
// The thread cache that this thread used last. Never null: initially `no_thread_cache`.
ISTHMUS_TLS_MODEL extern thread_local constinit ThreadCache* last_thread_cache;
// Set before the first thread cache exists.
extern constinit bool has_process_fence;
}  // namespace detail

// Marks that the owner accesses its thread cache. False if another thread is revoking it: the
// content must not be used then. While a `Hold` exists, take no lock but those of the pool's own
// lists.
class ThreadCache::Hold {
 public:
  explicit Hold(ThreadCache& own) noexcept : own_{own} {
    if (detail::has_process_fence) [[likely]] {
      own.use_.store(Use::active, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      own.use_.exchange(Use::active, std::memory_order_seq_cst);
    }
    is_held_ = !own.is_being_revoked_.load(std::memory_order_seq_cst);
  }
  ~Hold() { own_.use_.store(Use::recent, std::memory_order_release); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  [[nodiscard]] explicit operator bool() const noexcept { return is_held_; }

 private:
  ThreadCache& own_;
  bool is_held_;
};

inline void* ThreadCache::allocate_run(PageRun& run, std::size_t nbytes, std::uintptr_t key,
                                       PoolPageTable& table) noexcept {
  ISTHMUS_EXPECTS(run.count != 0);
  table.origin_of(run.first).set(nbytes, key);
  table[run.first].state.store(PoolPage::State::live, k_relaxed);
  cached_pages -= std::exchange(run.count, 0);
  return run.base;
}

inline void* ThreadCache::take_last_run(std::size_t nbytes, PoolPageTable& table) noexcept {
  ISTHMUS_EXPECTS(use_.load(k_relaxed) == Use::active);
  auto& last = runs[newest % k_runs];
  if (last.count == 0 || last.count != pool_pages_for(nbytes)) {
    return nullptr;
  }
  --newest;
  return allocate_run(last, nbytes, queue_key, table);
}

inline bool ThreadCache::keep_run(PoolPage& first, std::byte* base, PoolPageTable& table) noexcept {
  ISTHMUS_EXPECTS(use_.load(k_relaxed) == Use::active);
  auto& run = runs[(newest + 1) % k_runs];
  const auto count = first.span.load(k_relaxed);
  auto expected = PoolPage::State::live;
  if (run.count != 0 || address(base) % k_pool_page_bytes != 0 ||
      cached_pages + count > std::max<std::size_t>(k_max_cached_pages, count) ||
      !first.state.compare_exchange_strong(expected, PoolPage::State::cached, k_relaxed)) {
    return false;
  }
  run = {base, table.number_of(&first), count};
  cached_pages += count;
  ++newest;
  return true;
}

// The key of the thread cache for a queue. Null for no queue, and for queues where work may
// overtake other work (`is_in_order`). Call this once per operation, since the result may change
// meanwhile.
[[nodiscard]] inline Queue* thread_cache_key(Queue* queue) noexcept {
  return queue == nullptr || !queue->is_in_order() ? nullptr : queue;
}

}  // namespace isthmus
