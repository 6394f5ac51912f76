// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/pool_oom_stages.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "core/undo.hpp"
#include "memory/base/deferred_release.hpp"
#include "memory/base/oom_callbacks.hpp"
#include "memory/base/other_pools.hpp"
#include "memory/pool/block_events.hpp"
#include "memory/pool/pool_shortage.hpp"
#include "memory/pool/pool_snapshot.hpp"
#include "os/futex.hpp"

namespace isthmus {
namespace {

// The time that a thread may have to wait for a CPU on a loaded machine. It is many times as long
// as a query of an idle queue, and short compared with a driver's first touch of memory.
constexpr std::chrono::nanoseconds k_base_wait = std::chrono::milliseconds{4};

}  // namespace

// Runs the stages in order for one request, on one thread, and creates the error if all fail.
class PoolOomStages::Attempt {
  using Found = Result<RegionHeap::PageRun>;

 public:
  Attempt(PoolOomStages& stages, const WantedRun& wanted, Queue& queue) noexcept
      : stages_{stages}, parts_{stages.parts_}, wanted_{wanted}, queue_{queue} {}

  [[nodiscard]] Found run() {
    if (auto fits = parts_.source.fits(wanted_.min_count * k_pool_page_bytes); !fits) {
      request_.refusal = fits.take_error();
      return no_memory();
    }
    for (unsigned each = 0; each < k_oom_stages; ++each) {
      const auto stage = static_cast<OomStage>(each);
      if (!is_allowed(stage)) {
        continue;
      }
      stages_.counts_.tried(stage);
      observe_stage(stage);
      auto found = try_stage(stage);
      if (found) {
        stages_.counts_.served(stage);
        return found;
      }
      if (!is_out_of_memory(found)) {
        return found;
      }
      request_.tried |= 1U << static_cast<unsigned>(stage);
      request_.refusal = found.take_error();
    }
    return no_memory();
  }

 private:
  void observe_stage(OomStage stage) const noexcept {
    observe(MemoryEventKind::oom_stage, [&] {
      return MemoryEvent{.kind = MemoryEventKind::oom_stage,
                         .stage = static_cast<std::uint8_t>(stage),
                         .nbytes = wanted_.run_bytes(),
                         .requested = wanted_.nbytes,
                         .queue = queue_.serial(),
                         .resource = parts_.source.pool()};
    });
  }
  // Inside a continuation, and while `no_wait` is set, a request skips the stages after `grow`:
  // they may take long or call code of the program.
  [[nodiscard]] bool is_allowed(OomStage stage) const noexcept {
    if ((stage == OomStage::wait && stages_.max_wait_ <= stages_.max_wait_.zero()) ||
        (stage == OomStage::device_wait &&
         (!stages_.device_wait_ || wanted_.entry == QueueFences::k_no_queue)) ||
        (stage == OomStage::budget && parts_.source.shared() == nullptr && !driver_refused())) {
      return false;
    }
    return stage <= OomStage::grow || !(no_wait != 0 || in_continuation());
  }

  // A thread with many thread caches would flush them all for each slab, and the caches would then
  // take blocks from one another: an allocation and its free took 1,400 ns on 64 queues used
  // alternately, and the pool never grew.
  [[nodiscard]] bool should_flush_caches() const noexcept {
    return wanted_.nbytes > SizeClasses::k_largest ||
           ThreadCache::should_flush_own(parts_.caches, wanted_.count);
  }

  [[nodiscard]] Found try_stage(OomStage stage) {
    try {
      return run_stage(stage);
    } catch (const std::bad_alloc&) {  // the host is out of memory too
      return Error::no_memory();
    }
  }

  [[nodiscard]] Found run_stage(OomStage stage) {
    switch (stage) {
      case OomStage::collect: return collect();
      case OomStage::collect_idle: return collect_idle();
      case OomStage::grow: return grow();
      case OomStage::trim: return trim();
      case OomStage::budget: return budget();
      case OomStage::device_wait: return wait_on_device();
      case OomStage::callback: return call_callbacks();
      case OomStage::wait: return wait();
    }
    return request_.refusal;
  }

  // False if only a limit or the budget refused the request: releasing memory of pools outside the
  // budget cannot help then.
  [[nodiscard]] bool driver_refused() const noexcept { return driver_refusals != refusals_before_; }
  [[nodiscard]] DriverShortage driver_shortage() const noexcept {
    return {parts_.pool.device(), parts_.pool.kind(), wanted_.run_bytes(), &parts_.pool};
  }
  [[nodiscard]] Found budget() {
    auto found = parts_.growth.grow_with_budget_pools(wanted_);
    return driver_refused() ? with_other_pools(
                                  driver_shortage(), [&] { return retry(); }, std::move(found))
                            : std::move(found);
  }

  [[nodiscard]] Found allocate(RegionHeap::Cut cut = RegionHeap::Cut::any) {
    const auto found =
        parts_.regions.allocate(wanted_.count, wanted_.alignment, wanted_.entry, cut);
    return found.count != 0 ? Found{found} : Found{request_.refusal};
  }
  [[nodiscard]] Found collect_and_allocate(RegionHeap::Cut cut = RegionHeap::Cut::any) {
    parts_.collector.collect_own();
    spared_caches_ = false;
    return allocate(cut);
  }
  [[nodiscard]] Found collect() {
    if (should_flush_caches()) {
      return collect_and_allocate(RegionHeap::Cut::sparing_idle);
    }
    spared_caches_ = true;
    parts_.collector.coalesce();
    return allocate(RegionHeap::Cut::sparing_idle);
  }
  [[nodiscard]] Found collect_idle() {
    return parts_.collector.flush_idle() ? collect_and_allocate(RegionHeap::Cut::sparing_idle)
                                         : Found{request_.refusal};
  }
  // Tries, in order: pending releases; the driver; if the driver refuses, regions spared so far
  // (`RegionHeap::Cut`); and this thread's caches. If all fail, reduces the request to the minimum
  // number of pages, which later stages use too, and tries the driver again.
  [[nodiscard]] Found grow() {
    if (auto found = allocate_released_on_demand()) {
      return found;
    }
    if (auto found = allocate_pending(); !is_out_of_memory(found)) {
      return found;
    }
    auto found = grow_or_allocate();
    if (is_out_of_memory(found) && spared_caches_) {
      found = collect_and_allocate();
    }
    if (!is_out_of_memory(found) || wanted_.count == wanted_.min_count) {
      return found;
    }
    wanted_.count = wanted_.min_count;
    return grow_or_allocate();
  }
  // Allocates from pending releases whose queues are queried only on demand.
  [[nodiscard]] Found allocate_released_on_demand() {
    if (no_wait != 0 || !release_large_on_demand()) {
      return request_.refusal;
    }
    parts_.collector.coalesce();
    return allocate();
  }
  // Waits for pending releases if they are at least half of the memory that the pool holds. Without
  // this, a program that releases memory faster than the library thread queries the driver would
  // grow the pool without bound. If no memory is released in time, the pool grows without a wait
  // until it holds twice as much or memory was released; the next wait is twice as long.
  [[nodiscard]] Found allocate_pending() {
    if (!may_wait_for_pending()) {
      return request_.refusal;
    }
    const auto longest =
        std::min(k_base_wait * (1 << stages_.pending_releases_.failed_waits), stages_.max_wait_);
    const auto until = os::deadline_after(longest.count());
    while (most_is_pending()) {
      const auto initial_releases = release_count();
      auto released = wait_for_release(initial_releases, until);
      ISTHMUS_TRY(released);
      if (!*released) {
        if (os::Clock::now() >= until) {  // earlier only if there was nothing to wait for
          stages_.pending_releases_.note_failed_wait(initial_releases, held());
        }
        return request_.refusal;
      }
      parts_.collector.coalesce();
      if (auto found = allocate()) {
        stages_.pending_releases_.note_served();
        return found;
      }
    }
    return request_.refusal;
  }
  [[nodiscard]] bool may_wait_for_pending() const noexcept {
    return most_is_pending() && stages_.max_wait_ > stages_.max_wait_.zero() && no_wait == 0 &&
           !in_continuation() &&
           stages_.pending_releases_.is_wait_worthwhile(release_count(), held());
  }
  [[nodiscard]] std::size_t held() const noexcept { return parts_.source.counts().held_bytes(); }
  [[nodiscard]] bool most_is_pending() const noexcept {
    const auto pending = stages_.pending_releases_.bytes.load(std::memory_order_relaxed);
    return pending > 0 && static_cast<std::size_t>(pending) >= held() / 2;
  }
  [[nodiscard]] Found grow_or_allocate() {
    auto grown = parts_.growth.grow(wanted_);
    if (!is_out_of_memory(grown)) {
      return grown;
    }
    request_.refusal = grown.take_error();
    return allocate();
  }
  [[nodiscard]] Found trim() {
    const auto released = parts_.trim.trim(0);
    request_.trimmed += released;
    auto found = allocate();  // from slabs that the trim released
    return found || released == 0 ? std::move(found) : parts_.growth.grow(wanted_);
  }
  // Tries again after memory may have been freed.
  [[nodiscard]] Found retry() {
    if (auto found = collect_and_allocate()) {
      return found;
    }
    auto grown = parts_.growth.grow_with_budget_pools(wanted_);
    return is_out_of_memory(grown) ? trim() : std::move(grown);
  }

  [[nodiscard]] Found wait_on_device() {
    auto found = parts_.regions.allocate(wanted_.count, wanted_.alignment, QueueFences::k_any_queue,
                                         RegionHeap::Cut::any);
    if (found.count == 0) {
      return request_.refusal;
    }
    Undo undo{[&] { parts_.regions.deallocate(found.first, found.until); }};
    if (auto waits = parts_.caches.fences().add_dependency(found.until, queue_); !waits) {
      if (waits.failure().code() == ISTHMUS_ERROR_CALLBACK) {
        return waits.take_error();  // interrupted
      }
      return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
                  "the queue could not be made to wait for the work that uses free memory: {}",
                  waits.failure().message());
    }
    undo.dismiss();
    observe_reuse(parts_.source.pool(), found, wanted_.entry, queue_);
    // The whole run is now ordered on this queue. If it becomes a slab, the blocks that this
    // request does not take are usable by the next request on the queue.
    found.until = parts_.caches.fences().next(wanted_.entry);
    return found;
  }

  [[nodiscard]] Found call_callbacks() {
    request_.callbacks = process_oom_callbacks().call_all(
        request_for(parts_.pool.device(), parts_.pool.kind(), wanted_.run_bytes()));
    return request_.callbacks.called != 0 ? retry() : Found{request_.refusal};
  }

  // Never waits indefinitely: collectives may wait for one another, and for this thread
  // (tensorflow#50699). First waits for the work that still uses freed memory. This includes work
  // on the request's own queue only if chunks that no request can use depend on it
  // (`DeferredRegions::bytes`). Then waits for pending releases, and for other threads that are
  // calling the upstream resource.
  [[nodiscard]] Found wait() {
    const auto until = os::deadline_after(stages_.max_wait_.count());
    auto first = wait_for(parts_.caches.fences().running(wanted_.entry), until);
    if (is_out_of_memory(first) && parts_.deferred.bytes() != 0) {
      first = wait_for(parts_.caches.fences().running(), until);
    }
    if (!is_out_of_memory(first)) {
      return first;
    }
    for (auto upstream_calls = parts_.turns.at_upstream();;) {
      const auto initial_releases = release_count();
      const auto seen_upstream = parts_.turns.begin_upstream_wait();
      auto found = retry();
      if (!is_out_of_memory(found)) {
        return found;
      }
      request_.refusal = found.take_error();
      auto returned =
          upstream_calls != 0 ? parts_.turns.wait_for_upstream(seen_upstream, until) : false;
      ISTHMUS_TRY(returned);
      if (*returned) {
        --upstream_calls;
        continue;
      }
      const bool more_is_pending =
          stages_.pending_releases_.bytes.load(std::memory_order_relaxed) > 0;
      auto released = more_is_pending ? wait_for_release(initial_releases, until) : false;
      ISTHMUS_TRY(released);
      if (!*released) {
        return try_last(until);
      }
    }
  }
  // Retries once more, since memory may have been returned since the last attempt. If the driver
  // refused, first waits for the work that still uses freed memory of other pools.
  [[nodiscard]] Found try_last(const os::Deadline& until) {
    if (driver_refused()) {
      ISTHMUS_TRY(trim_after_work(driver_shortage(), until));
    }
    return retry();
  }

  [[nodiscard]] Found wait_for(WaitList running, const os::Deadline& until) {
    for (const auto& each : running) {
      ISTHMUS_TRY(each->wait_interruptibly(until));  // the event itself reports its failure
      if (auto found = collect_and_allocate()) {
        return found;
      }
    }
    if (running.empty()) {
      return request_.refusal;
    }
    // The continuation of a completed fence may not have run yet, because its thread waits for a
    // CPU. `running` passes the tickets of such fences.
    static_cast<void>(parts_.caches.fences().running());
    return collect_and_allocate();
  }

  [[nodiscard]] Error no_memory() {
    request_.run_bytes = wanted_.run_bytes();
    return refuse(request_, parts_.pool, parts_.source,
                  count_with_largest_request(parts_.caches, parts_.slabs, parts_.regions));
  }

  PoolOomStages& stages_;
  const Parts& parts_;
  WantedRun wanted_;
  Queue& queue_;
  RefusedRequest request_{wanted_.nbytes, wanted_.run_bytes()};
  const std::uint64_t refusals_before_ = driver_refusals;
  bool spared_caches_ = false;
};

Result<RegionHeap::PageRun> PoolOomStages::run(const WantedRun& wanted, Queue& queue) {
  return Attempt{*this, wanted, queue}.run();
}

}  // namespace isthmus
