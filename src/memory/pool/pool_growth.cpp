// SPDX-License-Identifier: Apache-2.0
// Obtains memory for a pool from the driver and returns it: growth, trimming and decay.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "core/sizes.hpp"
#include "memory/base/deferred_release.hpp"
#include "memory/base/oom_recovery.hpp"
#include "memory/pool/pool.hpp"

namespace isthmus {
namespace {

// The number of threads that are collecting a pool's free memory for decay. Each counter is shared
// by several pools. While memory moves from thread caches and slabs to the run heap, no request can
// use it. Without `wait_for_collection`, a program in steady state would then grow its pool.
constinit std::array<std::atomic<int>, 64> collecting{};

std::atomic<int>& collecting_of(const Pool& pool) noexcept {
  return collecting[address(&pool) / alignof(Pool) % collecting.size()];
}

class Collection {
 public:
  explicit Collection(const Pool& pool) noexcept : count_{collecting_of(pool)} {
    count_.fetch_add(1, std::memory_order_acq_rel);
  }
  Collection(const Collection&) = delete;
  Collection& operator=(const Collection&) = delete;
  ~Collection() { count_.fetch_sub(1, std::memory_order_acq_rel); }

 private:
  std::atomic<int>& count_;
};

// Waits for a collection to end, which takes some 10 us. The wait is bounded, since the collecting
// thread may be descheduled or in a driver call, and growing the pool instead is not an error.
void wait_for_collection(const Pool& pool) noexcept {
  constexpr auto k_max_wait = std::chrono::milliseconds{5};
  const auto& count = collecting_of(pool);
  if (count.load(std::memory_order_acquire) == 0) {
    return;
  }
  const auto until = std::chrono::steady_clock::now() + k_max_wait;
  while (count.load(std::memory_order_acquire) != 0 && std::chrono::steady_clock::now() < until) {
    std::this_thread::yield();
  }
}

}  // namespace

// Calls `grow`. If the budget refuses, makes the other pools of the budget release free memory, and
// retries. It retries several times, since another pool may take the released memory first, but not
// indefinitely, since those pools may grow as fast as they release.
template <class Grow>
auto Pool::with_budget_pools(std::size_t needed, Grow&& grow) -> decltype(grow()) {
  constexpr int k_max_attempts = 4;
  auto* const shared = source_.shared();
  for (int attempt = 1;; ++attempt) {
    const auto refusals = shared == nullptr ? 0 : shared->refusals();
    auto grown = grow();
    if (!is_out_of_memory(grown) || shared == nullptr || attempt == k_max_attempts ||
        shared->refusals() == refusals || !shared->make_room(*this, needed)) {
      return grown;
    }
  }
}

Result<void> Pool::grow_initially(std::size_t nbytes) {
  ISTHMUS_TRY(source_.fits(nbytes));
  const AllocationRequest request{kind(), nbytes};
  OomRecovery recovery{device(), request, nullptr, this};
  auto grown = recovery.allocate(
      [&] { return with_budget_pools(nbytes, [&] { return regions_.grow_by(nbytes); }); });
  return !is_out_of_memory(grown) ? grown
                                  : fail(ISTHMUS_ERROR_OUT_OF_MEMORY, "{}. To do: {}",
                                         grown.failure().message(), source_.remedy(nbytes, 0));
}

Result<RegionHeap::PageRun> Pool::grow(const WantedRun& wanted) {
  if (window_.is_enabled() && no_wait == 0) {
    wait_for_collection(*this);
    if (const auto found = regions_.allocate(wanted.count, wanted.alignment, wanted.entry,
                                             RegionHeap::Cut::sparing_idle);
        found.count != 0) {
      return found;
    }
  }
  decay(os::Clock::now());
  shrink(std::size_t{wanted.count} * k_pool_page_bytes);
  auto grown = regions_.grow(wanted.count, wanted.alignment, wanted.entry);
  if (window_.is_enabled()) {
    DecayingPools::only().schedule(window_);
  }
  return grown;
}

Result<RegionHeap::PageRun> Pool::grow_with_budget_pools(const WantedRun& wanted) {
  return with_budget_pools(std::size_t{wanted.count} * k_pool_page_bytes,
                           [&] { return grow(wanted); });
}

// Releases memory before the pool grows. Above the soft limit: all free memory that exceeds it.
// Where memory cannot be remapped: free regions that did not fit the request, until they amount to
// the bytes that the pool is about to obtain. In a recorded training run, the pool held 1.5 times
// the requested memory without this, and 1.05 times with it.
void Pool::shrink(std::size_t needed) noexcept {
  const auto held = source_.counts().held_bytes();
  const auto soft_limit = source_.sizes().soft_limit_bytes;
  if (held > soft_limit - std::min(needed, soft_limit)) {
    trim(soft_limit - std::min(needed, soft_limit));
  } else if (!source_.moves()) {
    regions_.release_unused(source_.growth_for(needed));
  }
}

// Flushes this thread's caches, so that their memory can be coalesced with free memory, then calls
// `coalesce_shared`.
void Pool::coalesce() noexcept {
  ThreadCache::flush_own(*this);
  coalesce_shared();
}

// Submits the fences that tickets wait for, and coalesces free memory whose tickets have passed.
void Pool::coalesce_shared() noexcept {
  slots().fence();
  regions_.coalesce();
}

// Flushes the thread caches that were not used since the last call. Runs at most every 10 ms, not
// at every growth: between two growths in quick succession, caches of working threads would seem
// unused.
bool Pool::revoke_idle_thread_caches() noexcept {
  constexpr auto k_interval = std::chrono::milliseconds{10};
  const auto now = std::chrono::steady_clock::now();
  auto due = next_revoke_.load(k_relaxed);
  if (now < due || !next_revoke_.compare_exchange_strong(due, now + k_interval, k_relaxed)) {
    return false;  // done less than 10 ms ago, or by another thread right now
  }
  ThreadCache::revoke(*this, ThreadCache::Revoked::idle);
  return true;
}

// Makes all free memory available to every request: flushes this thread's caches, those of other
// threads (`idle`: only those not used recently) and the central lists. A cache that its thread is
// using at the moment may retain some blocks.
void Pool::flush_caches(ThreadCache::Revoked scope) noexcept {
  ThreadCache::flush_own(*this);
  ThreadCache::revoke(*this, scope);
  for (unsigned each = 0; each < classes_.count(); ++each) {
    release_empty_slabs(central_.flush(each));
  }
  slots().fence();
  regions_.coalesce();
}

std::size_t Pool::trim(std::size_t keep) noexcept {
  start_release_thread();
  release_on_demand();
  const auto released = decay(os::Clock::now()) + trim_free(keep);
  auto* const upstream = source_.upstream();
  return std::max(released, upstream != nullptr ? upstream->trim(keep) : 0);
}

std::size_t Pool::trim_free(std::size_t keep) noexcept {
  flush_caches(ThreadCache::Revoked::all);
  return regions_.trim(keep);
}

std::size_t Pool::decay(DecayWindow::Clock::time_point now) noexcept {
  if (!window_.is_enabled() || !window_.advance(now)) {
    return 0;
  }
  const Collection collection{*this};
  flush_caches(ThreadCache::Revoked::idle);
  const auto held = source_.counts().held_bytes();
  return regions_.trim(held - std::min(held, regions_.min_free_bytes()));
}

}  // namespace isthmus
