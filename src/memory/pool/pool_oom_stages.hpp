// SPDX-License-Identifier: Apache-2.0
#pragma once
// The out-of-memory stages of a pool (oom_stages.hpp), for a request without a suitable free page
// run. Each stage lists in pool_oom_stages.cpp what it does; the error if all fail is created in
// pool_shortage.cpp.

#include <chrono>

#include "memory/base/oom_stages.hpp"
#include "memory/base/pending_releases.hpp"
#include "memory/base/pool_list.hpp"
#include "memory/pool/deferred_regions.hpp"
#include "memory/pool/growth_turns.hpp"
#include "memory/pool/pool_collector.hpp"
#include "memory/pool/pool_growth.hpp"
#include "memory/pool/pool_trim.hpp"
#include "memory/pool/region_heap.hpp"
#include "memory/pool/slab_source.hpp"
#include "memory/pool/thread_cache.hpp"
#include "memory/pool/wanted_run.hpp"

namespace isthmus {

// Thread-safe: the counters are atomic, and the state of a request is on its thread's stack.
class PoolOomStages {
 public:
  // The parts of the pool; each must outlive the object.
  struct Parts {
    ListedPool& pool;
    ThreadCacheOwner& caches;
    RegionSource& source;
    RegionHeap& regions;
    GrowthTurns& turns;
    const DeferredRegions& deferred;
    SlabSource& slabs;
    PoolCollector& collector;
    PoolTrim& trim;
    PoolGrowth& growth;
  };
  // `max_wait`: for the whole stage `wait`; 0: the stage is skipped. `device_wait`: whether the
  // stage of that name is allowed.
  PoolOomStages(const Parts& parts, std::chrono::nanoseconds max_wait, bool device_wait) noexcept
      : parts_{parts}, max_wait_{max_wait}, device_wait_{device_wait} {}

  // Tries the stages in order until one finds a page run for a request on `queue`. Errors: those of
  // the driver; CALLBACK if the thread's interrupt function ended a wait; OUT_OF_MEMORY, with the
  // state of the pool, if all stages fail. Calls the driver and code of the program, so the caller
  // holds no lock.
  [[nodiscard]] Result<RegionHeap::PageRun> run(const WantedRun& wanted, Queue& queue);
  // Adds `nbytes`, which may be negative, to the bytes of blocks that are pending release.
  void count_pending(std::int64_t nbytes) noexcept {
    pending_releases_.bytes.fetch_add(nbytes, std::memory_order_relaxed);
  }
  [[nodiscard]] const OomStages& counts() const noexcept { return counts_; }

 private:
  class Attempt;

  const Parts parts_;
  const std::chrono::nanoseconds max_wait_;
  const bool device_wait_;
  OomStages counts_;
  PendingReleases pending_releases_;
};

}  // namespace isthmus
