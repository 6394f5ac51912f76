// SPDX-License-Identifier: Apache-2.0
#pragma once
// Collects the free memory of a pool in its region heap, where any request can use it: from thread
// caches, from the central lists, and from runs whose work has ended.
//
// It calls the driver to submit fences, so the caller holds no lock.

#include <atomic>
#include <chrono>

#include "memory/pool/region_heap.hpp"
#include "memory/pool/slab_source.hpp"
#include "memory/pool/thread_cache.hpp"

namespace isthmus {

// Thread-safe.
class PoolCollector {
 public:
  // All arguments must outlive the object.
  PoolCollector(ThreadCacheOwner& caches, SlabSource& slabs, RegionHeap& regions) noexcept
      : caches_{caches}, slabs_{slabs}, regions_{regions} {}

  // Submits the fences that tickets wait for, and coalesces free memory whose tickets have passed.
  void coalesce() noexcept;
  // Flushes this thread's caches, so that their memory can be coalesced, then calls `coalesce`.
  void collect_own() noexcept;
  // Flushes the thread caches that were not used since the last call; `collect_own` then coalesces
  // their memory. Does so at most every 10 ms, not at every growth: between two growths in quick
  // succession, caches of working threads would seem unused. Returns whether it did.
  [[nodiscard]] bool flush_idle() noexcept;
  // Flushes this thread's caches, those of other threads (`idle`: only those not used recently) and
  // the central lists, then calls `coalesce`. A cache that its thread is using at the moment may
  // retain some blocks.
  void collect_all(ThreadCache::Revoked scope) noexcept;

 private:
  ThreadCacheOwner& caches_;
  SlabSource& slabs_;
  RegionHeap& regions_;
  // The time of the next search for idle thread caches.
  std::atomic<std::chrono::steady_clock::time_point> next_revoke_{};
};

}  // namespace isthmus
