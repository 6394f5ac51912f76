// SPDX-License-Identifier: Apache-2.0
#pragma once
// The pool: a memory resource that caches freed memory and sub-allocates.
//
// Use it for all memory that is allocated repeatedly: a warm allocation with its free takes about
// ten nanoseconds, however long the driver takes. Requests up to 256 KiB are served from slabs of
// their size class, through the thread cache (`ThreadCache`). Larger ones are runs of pages
// (`PoolPage`), of which a thread cache retains the last few. All metadata is on the host, apart
// from the memory. Thread-safe.
//
// A free never allocates or fails. It calls the driver only to submit a fence, and only for a queue
// whose order the pool cannot rely on, because external work may use the queue
// (`Queue::is_in_order`). Memory that was freed while work on a queue used it is reusable on that
// queue immediately, and on other queues after that work has completed (queue_fences.hpp). Memory
// returns to the driver on `trim`, by decay, when this pool or another one of its budget cannot
// grow otherwise, and when the pool is destroyed. Where the driver can remap memory, free chunks
// are joined at new addresses (region_heap.hpp).
//
// An allocation goes through these steps until one succeeds (docs/life-of-an-allocation.md):
//   Pool::allocate_cached        the thread's last cache                      this header
//   Pool::allocate               its other caches                             pool.cpp
//   Pool::refill                 blocks for a thread cache:                   pool.cpp
//     SlabSource::take             from central lists, or a free page run     slab_source.cpp
//   Pool::take_run               pages for a slab or a large block:           pool.cpp
//     RegionHeap::allocate         from free page runs                        region_heap.cpp
//     PoolOomStages::run           else the out-of-memory stages:             pool_oom_stages.cpp
//       PoolCollector                flush caches, coalesce free memory       pool_collector.cpp
//       PoolGrowth::grow             grow, after decay and the soft limit     pool_growth.cpp
//       PoolTrim::trim               return free memory                       pool_trim.cpp
//   RegionGrowth::grow           growth: new regions                          region_growth.cpp
//     RegionAssembler::assemble    of chunks, where they can be remapped      region_assembler.cpp
//     RegionSource::allocate       else from the driver or an upstream        region_source.cpp
//   refuse                       the error, if all of this fails              pool_shortage.cpp
// The caller's request may then recover outside of the pool (`OomRecovery`). A free takes the
// reverse way: Pool::deallocate_fast, Pool::deallocate, SlabSource::return_blocks or
// RegionHeap::deallocate. Memory returns to the driver through RegionTrim.
//
// Each part is a class that uses only the parts declared before it in `Pool`. `Pool` itself has no
// lock. A thread holds the turn of a growth or trim (growth_turns.hpp) or the lock of the thread
// caches (thread_cache.cpp), not both; under either it may take the lock of a central shard
// (central_shard.hpp) or that of the region heap, one at a time. Only a turn is held during driver
// calls.

#include <array>
#include <atomic>
#include <chrono>
#include <memory>

#include "core/mutex.hpp"
#include "core/thread_safety.hpp"
#include "memory/base/deferred_release.hpp"
#include "memory/base/oom_stages.hpp"
#include "memory/base/pool_list.hpp"
#include "memory/pool/block_events.hpp"
#include "memory/pool/deferred_regions.hpp"
#include "memory/pool/growth_turns.hpp"
#include "memory/pool/page_map.hpp"
#include "memory/pool/pool_collector.hpp"
#include "memory/pool/pool_growth.hpp"
#include "memory/pool/pool_oom_stages.hpp"
#include "memory/pool/pool_snapshot.hpp"
#include "memory/pool/pool_trim.hpp"
#include "memory/pool/region_count.hpp"
#include "memory/pool/region_growth.hpp"
#include "memory/pool/region_heap.hpp"
#include "memory/pool/region_trim.hpp"
#include "memory/pool/slab_source.hpp"
#include "memory/pool/thread_cache.hpp"

namespace isthmus {

class Pool final : public ListedPool, public Releasable, public ThreadCacheOwner {
 public:
  struct Options {
    std::size_t growth_bytes = 0;        // minimum size of a driver request; 0: chosen by the pool
    std::size_t initial_bytes = 0;       // obtained from the driver on creation
    std::size_t limit_bytes = SIZE_MAX;  // maximum that the pool holds
    bool checks = true;                  // detects invalid and double frees; costs about 3 ns
    bool remaps = true;                  // remaps free memory for large requests, if the driver can
    // Before the pool grows beyond this limit, it returns free memory to the driver.
    std::size_t soft_limit_bytes = SIZE_MAX;
    Ref<Budget> shared = {};  // limits the memory that it and other pools hold together
    // Provides its memory, of the same context, device and kind. Null: the driver does.
    std::shared_ptr<PoolUpstream> upstream = {};
    // Memory that was not needed for this long returns to the driver (decay.hpp). 0: never.
    std::chrono::nanoseconds decay{0};
    std::chrono::nanoseconds max_wait = std::chrono::seconds{1};  // before a request fails
    bool device_wait = false;  // a request's queue, not the host, waits for work of other queues
    // Counts memory obtained from the driver. Null: not counted; default pools count blocks
    // instead.
    LiveCounts* live = &process_live_counts();
  };

  [[nodiscard]] static Result<Ref<Pool>> create(Context& context, Device& device, UsmKind kind,
                                                const Options& options);
  // Called by `create`.
  Pool(Context& context, Device& device, UsmKind kind, const Options& options);

  [[nodiscard]] Result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       Queue& queue) override;
  // The fast paths, which use only this thread's cache. They return null, or false, if the cache
  // does not suffice and for every error. Not called in a forked child.
  [[nodiscard]] void* allocate_fast(std::size_t nbytes, std::size_t alignment,
                                    Queue* queue) noexcept override;
  [[nodiscard]] bool deallocate_fast(void* pointer, std::size_t nbytes,
                                     Queue* queue) noexcept override;
  // As the fast paths, without events. Call them after `takes_long_path` (core/long_path.hpp).
  [[nodiscard]] void* allocate_cached(std::size_t nbytes, std::size_t alignment,
                                      Queue* queue) noexcept;
  [[nodiscard]] bool deallocate_cached(void* pointer, Queue* queue) noexcept;
  // INVALID_ARGUMENT for a pointer that is not a block of this pool, points inside a block, or was
  // freed before.
  Result<void> deallocate(void* pointer, std::size_t nbytes, Queue* queue) noexcept override;

  // Frees a block whose allocation record has ended, without searching for a record.
  void recycle(void* pointer, Queue* queue) noexcept;

  // As `recycle`, in two steps. After `end_block` the block is no longer live but not reusable yet;
  // `recycle_ended` makes it reusable. `page` is the record of the page where the block begins.
  void end_block(PoolPage& page, void* pointer) noexcept {
    if (!page.is_slab()) {
      page.state.store(PoolPage::State::cached, k_relaxed);
    } else if (checks_) {
      auto& owner = *page.in_slab();
      owner.mark_freed_exclusive(owner.number_of(pointer));
    }
  }
  void recycle_ended(PoolPage& page, void* pointer, Queue* queue) noexcept {
    if (!page.is_slab()) {
      put_run_in_thread_cache(page, pointer, queue);
    } else if (const auto size_class = page.span.load(k_relaxed);
               !put_in_last_cache(size_class, pointer, queue)) {
      put_in_thread_cache(size_class, pointer, queue);
    }
  }

  // Whether any block was freed in the order of a queue while work there may still have used it:
  // work that the library submitted or, for a block freed by its bare pointer, work unknown to it.
  [[nodiscard]] bool frees_after_work() const noexcept { return frees_after_work_.load(k_relaxed); }
  // Sets the flag `frees_after_work`. Writes it only once, since it shares a cache line with fields
  // that every thread reads.
  void note_free_after_work() noexcept {
    if (!frees_after_work_.load(k_relaxed)) [[unlikely]] {
      frees_after_work_.store(true, k_relaxed);
    }
  }

  // Adds `nbytes` to the bytes of blocks that are pending release (deferred_release.hpp). `nbytes`
  // is negative when blocks are released, or when the time of their release is unknown.
  void count_pending(std::int64_t nbytes) noexcept { oom_stages_.count_pending(nbytes); }

  // For the creation of records of blocks that were allocated without one (allocation_lookup.cpp).
  struct RecordCreation {
    Mutex lock;  // held while a record is created
    Ref<Queue> queue ISTHMUS_GUARDED_BY(lock);
  };
  [[nodiscard]] RecordCreation& record_creation() noexcept { return record_creation_; }
  // The alignment of its blocks.
  [[nodiscard]] std::size_t unit() const noexcept { return classes_.unit(); }

  [[nodiscard]] MemoryUsage usage() noexcept override;
  // As `RegionTrim::trim`, after flushing the thread caches of all threads. Memory that has decayed
  // is released even if less than `keep` bytes remain.
  std::size_t trim(std::size_t keep) noexcept override { return trim_.trim(keep); }
  std::size_t trim_free(std::size_t keep) noexcept override { return trim_.trim_free(keep); }
  [[nodiscard]] std::vector<Ref<Event>> running() override { return fences().running(); }
  // If true, `trim_free` calls no other resource.
  [[nodiscard]] bool is_driver_backed() const noexcept override {
    return source_.upstream() == nullptr;
  }
  [[nodiscard]] Result<void> verify() override;
  std::size_t decay(os::Clock::time_point now) noexcept override { return trim_.decay(now); }
  [[nodiscard]] os::Clock::time_point decay_end() const noexcept override {
    return trim_.window().end();
  }
  [[nodiscard]] Snapshot count() const { return RegionCount{regions_, nullptr}.count().snapshot; }
  // As `count`, and also determines the largest request that this thread could make without growing
  // the pool.
  [[nodiscard]] Snapshot count_with_largest_request() const noexcept {
    return isthmus::count_with_largest_request(*this, slabs_, regions_);
  }
  // As `RegionHeap::since`.
  [[nodiscard]] std::uint64_t since(const PoolPage& page) const noexcept {
    return regions_.since(page);
  }
  [[nodiscard]] const OomStages& oom_stages() const noexcept { return oom_stages_.counts(); }
  void set_bin_capacities(ThreadCache& cache, std::uint32_t share) const noexcept override;
  void flush(ThreadCache& cache) noexcept override;

 private:
  ~Pool() override;
  void on_last_release() noexcept override;
  void release_now() noexcept override;

  // `own` may be null: the thread has no cache.
  [[nodiscard]] static unsigned shard_of(const ThreadCache* own) noexcept {
    return own != nullptr ? own->shard : 0;
  }
  [[nodiscard]] ThreadCache* thread_cache_for(Queue* key) noexcept {
    auto* last = detail::last_thread_cache;
    return last->serves(*this, key) ? last : ThreadCache::find(*this, key);
  }
  // Unpoison a block that is allocated and poison one that is freed, in builds with a sanitizer
  // (free_poison.hpp). Whether work still uses the block is determined without calling the driver.
  [[nodiscard]] void* unpoison(void* block, std::size_t nbytes) const noexcept {
    source_.poison().remove(block, nbytes);
    return block;
  }
  void poison(const void* block, std::size_t nbytes, Queue* queue) const noexcept {
    if (source_.poison().is_enabled() && (queue == nullptr || queue->is_known_idle())) {
      source_.poison().apply(block, nbytes);
    }
  }
  // The thread cache for a free ordered after the work on `queue`. Null if there is none, or if the
  // free needs a fence of its own.
  [[nodiscard]] ThreadCache* thread_cache_after(Queue* queue) noexcept {
    auto* key = thread_cache_key(queue);
    return queue != nullptr && key == nullptr ? nullptr : thread_cache_for(key);
  }
  // As `deallocate_fast` while frees are observed: emits the event while no cache is held.
  [[nodiscard]] bool deallocate_observed(void* pointer, Queue* queue) noexcept;
  // Emits `allocate` if the request succeeded. Returns `block`.
  [[nodiscard]] Result<void*> observed(Result<void*> block, std::size_t nbytes,
                                       const Queue& queue) const noexcept {
    if (block && is_observed(MemoryEventKind::allocate)) [[unlikely]] {
      emit_block_event(MemoryEventKind::allocate, this, *block, nbytes, &queue);
    }
    return block;
  }
  // Call this before another request can take the block.
  void observe_free(const void* block, const Queue* queue) const noexcept {
    if (is_observed(MemoryEventKind::free)) [[unlikely]] {
      emit_block_event(MemoryEventKind::free, this, block, 0, queue);
    }
  }
  [[nodiscard]] Result<void*> allocate_block(unsigned size_class, Queue& queue);
  [[nodiscard]] Result<void*> allocate_run(std::size_t nbytes, std::size_t alignment, Queue& queue);
  // Obtains at least one block, and at most as many as `out` has elements.
  [[nodiscard]] Result<std::size_t> refill(unsigned size_class, std::span<void*> out, Queue& queue,
                                           unsigned shard);
  [[nodiscard]] Result<std::size_t> add_slab(unsigned size_class, std::span<void*> out,
                                             Queue& queue, unsigned shard);
  [[nodiscard]] Result<RegionHeap::PageRun> take_run(const WantedRun& wanted, Queue& queue);
  void keep_blocks(unsigned size_class, std::span<void* const> blocks, Queue& queue,
                   Queue* key) noexcept;

  [[nodiscard]] Result<void> free_block(PoolPage& page, void* pointer, Queue* queue) noexcept;
  void put_in_thread_cache(unsigned size_class, void* pointer, Queue* queue) noexcept;
  // As `put_in_thread_cache`, in the thread's last cache. Returns false, without effect, if that
  // cache does not suffice or frees are observed.
  [[nodiscard]] bool put_in_last_cache(unsigned size_class, void* pointer, Queue* queue) noexcept;
  // Caches the run that begins at `first`, which is in state `cached` but in no thread cache yet.
  void put_run_in_thread_cache(PoolPage& first, void* pointer, Queue* queue) noexcept;
  [[nodiscard]] Ticket ticket_after(Queue* queue) noexcept;
  [[nodiscard]] Result<void> free_run(PoolPage& page, void* pointer, Queue* queue) noexcept;
  // These return false while another thread revokes the thread cache.
  [[nodiscard]] bool keep_block(ThreadCache& cache, unsigned size_class, void* block) noexcept;
  [[nodiscard]] bool keep_run(ThreadCache& cache, const ThreadCache::PageRun& freed) noexcept;
  void flush_runs(ThreadCache& cache) noexcept;

  const SizeClasses classes_;
  const bool checks_;
  std::atomic<bool> frees_after_work_{false};
  int release_tries_ = 0;
  RegionSource source_;
  RegionHeap regions_;
  GrowthTurns turns_;
  DeferredRegions deferred_;
  RegionTrim region_trim_;
  RegionGrowth region_growth_;
  SlabSource slabs_;
  PoolCollector collector_;
  PoolTrim trim_;
  PoolGrowth growth_;
  PoolOomStages oom_stages_;
  RecordCreation record_creation_;
};

inline void* Pool::allocate_fast(std::size_t nbytes, std::size_t alignment, Queue* queue) noexcept {
  auto* const block = allocate_cached(nbytes, alignment, queue);
  if (is_observed(MemoryEventKind::allocate) && block != nullptr) [[unlikely]] {
    emit_block_event(MemoryEventKind::allocate, this, block, nbytes, queue);
  }
  return block;
}

inline bool Pool::deallocate_fast(void* pointer, std::size_t /*nbytes*/, Queue* queue) noexcept {
  return is_observed(MemoryEventKind::free) ? deallocate_observed(pointer, queue)
                                            : deallocate_cached(pointer, queue);
}

inline void* Pool::allocate_cached(std::size_t nbytes, std::size_t alignment,
                                   Queue* queue) noexcept {
  auto& cache = *detail::last_thread_cache;
  if (!cache.serves(*this, queue) || alignment > classes_.unit() ||
      (alignment & (alignment - 1)) != 0 || queue == nullptr || queue->is_exported() ||
      !queue->is_in_order()) {
    return nullptr;
  }
  const ThreadCache::Hold held{cache};
  if (!held) [[unlikely]] {
    return nullptr;
  }
  if (nbytes - 1 >= SizeClasses::k_largest) [[unlikely]] {  // also true for 0 bytes
    auto* const run = cache.take_last_run(nbytes, regions_.table());
    return run == nullptr ? nullptr : unpoison(run, pool_pages_for(nbytes) * k_pool_page_bytes);
  }
  const auto size_class = classes_.class_of(nbytes);
  auto& bin = cache.bins[size_class];
  if (bin.count == 0) [[unlikely]] {
    return nullptr;
  }
  auto* block = bin.blocks[--bin.count];
  if (checks_) {
    auto& owner = process_page_map.at(block).last_slab();
    owner.mark_live(owner.number_of(block));
  }
  return unpoison(block, classes_.bytes_of(size_class));
}

inline bool Pool::put_in_last_cache(unsigned size_class, void* pointer, Queue* queue) noexcept {
  auto& cache = *detail::last_thread_cache;
  if (!cache.serves(*this, queue) || queue == nullptr || !queue->is_in_order() ||
      is_observed(MemoryEventKind::free)) [[unlikely]] {
    return false;
  }
  const ThreadCache::Hold held{cache};
  auto& bin = cache.bins[size_class];
  if (!held || bin.count == bin.capacity) [[unlikely]] {
    return false;
  }
  poison(pointer, classes_.bytes_of(size_class), queue);
  bin.blocks[bin.count++] = pointer;
  return true;
}

inline bool Pool::deallocate_cached(void* pointer, Queue* queue) noexcept {
  auto& cache = *detail::last_thread_cache;
  const auto& entry = process_page_map.at(pointer);
  const auto seen = entry.load();
  if (!cache.serves(*this, queue) || queue == nullptr || !queue->is_in_order()) [[unlikely]] {
    return false;
  }
  note_free_after_work();
  const ThreadCache::Hold held{cache};
  if (!held) [[unlikely]] {
    return false;
  }
  if (!regions_.has_bare_blocks(seen)) [[unlikely]] {
    auto* page = seen.record();
    if (page == nullptr || !regions_.has(page) ||
        !cache.keep_run(*page, static_cast<std::byte*>(pointer), regions_.table())) {
      return false;
    }
    poison(pointer, page->span.load(k_relaxed) * k_pool_page_bytes, queue);
    return true;
  }
  auto& bin = cache.bins[seen.size_class()];
  if (bin.count == bin.capacity) [[unlikely]] {
    return false;
  }
  if (checks_) {
    auto& owner = entry.last_slab();
    const auto block = owner.block_at(pointer);
    if (block == Slab::k_no_block || !owner.mark_freed(block)) [[unlikely]] {
      return false;
    }
  }
  poison(pointer, classes_.bytes_of(seen.size_class()), queue);
  bin.blocks[bin.count++] = pointer;
  return true;
}

}  // namespace isthmus
