// SPDX-License-Identifier: Apache-2.0
// The out-of-memory stages of a pool, for a request without a suitable free page run.

#include <algorithm>
#include <chrono>
#include <new>
#include <string>

#include "core/sizes.hpp"
#include "core/undo.hpp"
#include "memory/base/deferred_release.hpp"
#include "memory/base/holders.hpp"
#include "memory/base/oom_callbacks.hpp"
#include "memory/base/other_pools.hpp"
#include "memory/base/snapshot.hpp"
#include "memory/pool/pool.hpp"
#include "os/futex.hpp"

namespace isthmus {
namespace {

// The time that a thread may have to wait for a CPU on a loaded machine. It is many times as long
// as a query of an idle queue, and short compared with a driver's first touch of memory.
constexpr std::chrono::nanoseconds k_base_wait = std::chrono::milliseconds{4};

}  // namespace

// Runs the stages in order for one request, on one thread, and creates the error if all fail.
class Pool::OomStageRunner {
 public:
  OomStageRunner(Pool& pool, const WantedRun& wanted, Queue& queue) noexcept
      : pool_{pool}, wanted_{wanted}, queue_{queue} {}

  [[nodiscard]] Result<RegionHeap::PageRun> run() {
    if (auto fits = pool_.source_.fits(wanted_.min_count * k_pool_page_bytes); !fits) {
      refusal_ = fits.take_error();
      return no_memory();
    }
    for (unsigned each = 0; each < k_oom_stages; ++each) {
      const auto stage = static_cast<OomStage>(each);
      if (!is_allowed(stage)) {
        continue;
      }
      pool_.oom_stages_.tried(stage);
      auto found = try_stage(stage);
      if (found) {
        pool_.oom_stages_.served(stage);
        return found;
      }
      if (!is_out_of_memory(found)) {
        return found;
      }
      tried_ |= 1U << static_cast<unsigned>(stage);
      refusal_ = found.take_error();
    }
    return no_memory();
  }

 private:
  [[nodiscard]] std::size_t needed() const noexcept {
    return std::size_t{wanted_.count} * k_pool_page_bytes;
  }
  // Inside a continuation, and while `no_wait` is set, a request skips the stages after `grow`:
  // they may take long or call code of the program.
  [[nodiscard]] bool is_allowed(OomStage stage) const noexcept {
    if ((stage == OomStage::wait && pool_.max_wait_ <= pool_.max_wait_.zero()) ||
        (stage == OomStage::device_wait &&
         (!pool_.device_wait_ || wanted_.entry == QueueSlots::k_no_queue)) ||
        (stage == OomStage::budget && pool_.source_.shared() == nullptr && !driver_refused())) {
      return false;
    }
    return stage <= OomStage::grow || !(no_wait != 0 || in_continuation());
  }

  // A thread with many thread caches would flush them all for each slab, and the caches would then
  // take blocks from one another: an allocation and its free took 1,400 ns on 64 queues used
  // alternately, and the pool never grew.
  [[nodiscard]] bool should_flush_caches() const noexcept {
    return wanted_.nbytes > SizeClasses::k_largest ||
           ThreadCache::should_flush_own(pool_, wanted_.count);
  }

  [[nodiscard]] Result<RegionHeap::PageRun> try_stage(OomStage stage) {
    try {
      return run_stage(stage);
    } catch (const std::bad_alloc&) {  // the host is out of memory too
      return Error::no_memory();
    }
  }

  [[nodiscard]] Result<RegionHeap::PageRun> run_stage(OomStage stage) {
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
    return refusal_;
  }

  // False if only a limit or the budget refused the request: releasing memory of pools outside the
  // budget cannot help then.
  [[nodiscard]] bool driver_refused() const noexcept { return driver_refusals != refusals_before_; }
  [[nodiscard]] DriverShortage driver_shortage() const noexcept {
    return {pool_.device(), pool_.kind(), needed(), &pool_};
  }
  [[nodiscard]] Result<RegionHeap::PageRun> budget() {
    auto found = pool_.grow_with_budget_pools(wanted_);
    return driver_refused() ? with_other_pools(
                                  driver_shortage(), [&] { return retry(); }, std::move(found))
                            : std::move(found);
  }

  [[nodiscard]] Result<RegionHeap::PageRun> allocate(RegionHeap::Cut cut = RegionHeap::Cut::any) {
    const auto found =
        pool_.regions_.allocate(wanted_.count, wanted_.alignment, wanted_.entry, cut);
    return found.count != 0 ? Result<RegionHeap::PageRun>{found}
                            : Result<RegionHeap::PageRun>{refusal_};
  }
  [[nodiscard]] Result<RegionHeap::PageRun> coalesce(RegionHeap::Cut cut = RegionHeap::Cut::any) {
    pool_.coalesce();
    spared_caches_ = false;
    return allocate(cut);
  }
  [[nodiscard]] Result<RegionHeap::PageRun> collect() {
    if (should_flush_caches()) {
      return coalesce(RegionHeap::Cut::sparing_idle);
    }
    spared_caches_ = true;
    pool_.coalesce_shared();
    return allocate(RegionHeap::Cut::sparing_idle);
  }
  [[nodiscard]] Result<RegionHeap::PageRun> collect_idle() {
    return pool_.revoke_idle_thread_caches() ? coalesce(RegionHeap::Cut::sparing_idle)
                                             : Result<RegionHeap::PageRun>{refusal_};
  }
  // Tries, in order: pending releases; the driver; if the driver refuses, regions spared so far
  // (`RegionHeap::Cut`); and this thread's caches. If all fail, reduces the request to the minimum
  // number of pages, which later stages use too, and tries the driver again.
  [[nodiscard]] Result<RegionHeap::PageRun> grow() {
    if (auto found = allocate_released_on_demand()) {
      return found;
    }
    if (auto found = allocate_pending(); !is_out_of_memory(found)) {
      return found;
    }
    auto found = grow_or_allocate();
    if (is_out_of_memory(found) && spared_caches_) {
      found = coalesce();
    }
    if (!is_out_of_memory(found) || wanted_.count == wanted_.min_count) {
      return found;
    }
    wanted_.count = wanted_.min_count;
    return grow_or_allocate();
  }
  // Allocates from pending releases whose queues are queried only on demand.
  [[nodiscard]] Result<RegionHeap::PageRun> allocate_released_on_demand() {
    if (no_wait != 0 || !release_large_on_demand()) {
      return refusal_;
    }
    pool_.coalesce_shared();
    return allocate();
  }
  // Waits for pending releases if they are at least half of the memory that the pool holds. Without
  // this, a program that releases memory faster than the library thread queries the driver would
  // grow the pool without bound. If no memory is released in time, the pool grows without a wait
  // until it holds twice as much or memory was released; the next wait is twice as long.
  [[nodiscard]] Result<RegionHeap::PageRun> allocate_pending() {
    if (!may_wait_for_pending()) {
      return refusal_;
    }
    const auto longest =
        std::min(k_base_wait * (1 << pool_.pending_releases_.failed_waits), pool_.max_wait_);
    const auto until = os::deadline_after(longest.count());
    while (most_is_pending()) {
      const auto initial_releases = release_count();
      auto released = wait_for_release(initial_releases, until);
      ISTHMUS_TRY(released);
      if (!*released) {
        if (os::Clock::now() >= until) {  // earlier only if there was nothing to wait for
          pool_.pending_releases_.note_failed_wait(initial_releases, held());
        }
        return refusal_;
      }
      pool_.coalesce_shared();
      if (auto found = allocate()) {
        pool_.pending_releases_.note_served();
        return found;
      }
    }
    return refusal_;
  }
  [[nodiscard]] bool may_wait_for_pending() const noexcept {
    return most_is_pending() && pool_.max_wait_ > pool_.max_wait_.zero() && no_wait == 0 &&
           !in_continuation() &&
           pool_.pending_releases_.is_wait_worthwhile(release_count(), held());
  }
  [[nodiscard]] std::size_t held() const noexcept { return pool_.source_.counts().held_bytes(); }
  [[nodiscard]] bool most_is_pending() const noexcept {
    const auto pending = pool_.pending_releases_.bytes.load(std::memory_order_relaxed);
    return pending > 0 && static_cast<std::size_t>(pending) >= held() / 2;
  }
  [[nodiscard]] Result<RegionHeap::PageRun> grow_or_allocate() {
    auto grown = pool_.grow(wanted_);
    if (!is_out_of_memory(grown)) {
      return grown;
    }
    refusal_ = grown.take_error();
    return allocate();
  }
  [[nodiscard]] Result<RegionHeap::PageRun> trim() {
    const auto released = pool_.trim(0);
    trimmed_ += released;
    auto found = allocate();  // from slabs that the trim released
    return found || released == 0 ? std::move(found) : pool_.grow(wanted_);
  }
  // Tries again after memory may have been freed.
  [[nodiscard]] Result<RegionHeap::PageRun> retry() {
    if (auto found = coalesce()) {
      return found;
    }
    auto grown = pool_.grow_with_budget_pools(wanted_);
    return is_out_of_memory(grown) ? trim() : std::move(grown);
  }

  [[nodiscard]] Result<RegionHeap::PageRun> wait_on_device() {
    auto found = pool_.regions_.allocate(wanted_.count, wanted_.alignment, QueueSlots::k_any_queue,
                                         RegionHeap::Cut::any);
    if (found.count == 0) {
      return refusal_;
    }
    Undo undo{[&] { pool_.regions_.deallocate(found.first, found.until); }};
    if (auto waits = pool_.slots().add_dependency(found.until, queue_); !waits) {
      if (waits.failure().code() == ISTHMUS_ERROR_CALLBACK) {
        return waits.take_error();  // interrupted
      }
      return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
                  "the queue could not be made to wait for the work that uses free memory: {}",
                  waits.failure().message());
    }
    undo.dismiss();
    // The whole run is now ordered on this queue. If it becomes a slab, the blocks that this
    // request does not take are usable by the next request on the queue.
    found.until = pool_.slots().next(wanted_.entry);
    return found;
  }

  [[nodiscard]] Result<RegionHeap::PageRun> call_callbacks() {
    callback_outcome_ =
        process_oom_callbacks().call_all(request_for(pool_.device(), pool_.kind(), needed()));
    return callback_outcome_.called != 0 ? retry() : Result<RegionHeap::PageRun>{refusal_};
  }

  // Never waits indefinitely: collectives may wait for one another, and for this thread
  // (tensorflow#50699). First waits for the work that still uses freed memory. This includes work
  // on the request's own queue only if chunks that no request can use depend on it
  // (`RegionHeap::deferred_bytes`). Then waits for pending releases, and for other threads that are
  // calling the upstream resource.
  [[nodiscard]] Result<RegionHeap::PageRun> wait() {
    const auto until = os::deadline_after(pool_.max_wait_.count());
    auto first = wait_for(pool_.slots().running(wanted_.entry), until);
    if (is_out_of_memory(first) && pool_.regions_.deferred_bytes() != 0) {
      first = wait_for(pool_.slots().running(), until);
    }
    if (!is_out_of_memory(first)) {
      return first;
    }
    for (auto upstream_calls = pool_.regions_.at_upstream();;) {
      const auto initial_releases = release_count();
      const auto seen_upstream = pool_.regions_.begin_upstream_wait();
      auto found = retry();
      if (!is_out_of_memory(found)) {
        return found;
      }
      refusal_ = found.take_error();
      auto returned =
          upstream_calls != 0 ? pool_.regions_.wait_for_upstream(seen_upstream, until) : false;
      ISTHMUS_TRY(returned);
      if (*returned) {
        --upstream_calls;
        continue;
      }
      const bool more_is_pending =
          pool_.pending_releases_.bytes.load(std::memory_order_relaxed) > 0;
      auto released = more_is_pending ? wait_for_release(initial_releases, until) : false;
      ISTHMUS_TRY(released);
      if (!*released) {
        return try_last(until);
      }
    }
  }
  // Retries once more, since memory may have been returned since the last attempt. If the driver
  // refused, first waits for the work that still uses freed memory of other pools.
  [[nodiscard]] Result<RegionHeap::PageRun> try_last(const os::Deadline& until) {
    if (driver_refused()) {
      ISTHMUS_TRY(trim_after_work(driver_shortage(), until));
    }
    return retry();
  }

  [[nodiscard]] Result<RegionHeap::PageRun> wait_for(WaitList running, const os::Deadline& until) {
    for (const auto& each : running) {
      ISTHMUS_TRY(each->wait_interruptibly(until));  // the event itself reports its failure
      if (auto found = coalesce()) {
        return found;
      }
    }
    if (running.empty()) {
      return refusal_;
    }
    // The continuation of a completed fence may not have run yet, because its thread waits for a
    // CPU. `running` passes the tickets of such fences.
    static_cast<void>(pool_.slots().running());
    return coalesce();
  }

  // Describes the stages tried and the bytes that they released, for the error message.
  [[nodiscard]] std::string describe_stages() const {
    std::string text;
    for (unsigned each = 0; each < k_oom_stages; ++each) {
      if ((tried_ >> each & 1) != 0) {
        text += text.empty() ? "" : ", ";
        text += oom_stage_name(static_cast<OomStage>(each));
      }
    }
    return text.empty()
               ? "nothing"
               : fmt::format("{} ({} released, {} by {} out-of-memory callback{})", text,
                             describe_bytes(trimmed_), describe_bytes(callback_outcome_.bytes),
                             callback_outcome_.called, callback_outcome_.called == 1 ? "" : "s");
  }
  [[nodiscard]] const char* advice(const Snapshot& snapshot) const noexcept {
    if (snapshot.largest_free >= needed()) {
      return "it has become free in the meantime: retry";
    }
    if (snapshot.free >= needed()) {
      return "it is free in pieces only: request less at a time, or free the blocks between them";
    }
    if (snapshot.free + snapshot.waiting >= needed()) {
      return "it is free once pending work has completed: wait for the queues, or longer (wait_ns)";
    }
    if (snapshot.free + snapshot.waiting + snapshot.cached >= needed()) {
      return "thread caches hold it, or it lies between live blocks: retry, or request less at a "
             "time";
    }
    return pool_.source_.remedy(needed(), snapshot.free);
  }
  [[nodiscard]] Error no_memory() const {
    Shortage shortage{pool_.count_with_largest_request(), {}, pool_.kind(), wanted_.nbytes, tried_};
    pool_.device().properties().filter.copy(shortage.device.data(), shortage.device.size() - 1);
    find_holders(pool_, shortage.snapshot);
    shortage.advice = advice(shortage.snapshot);
    auto error = describe_failure(shortage.snapshot);
    remember_shortage(error, shortage);
    return error;
  }
  [[nodiscard]] Error describe_failure(const Snapshot& snapshot) const noexcept {
    const auto* kind = kind_name(pool_.kind());
    const auto& device = pool_.device().properties().filter;
    try {
      return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
                  "a pool cannot allocate {} of {} memory on {}: it holds {}, of which {} are "
                  "live, {} cached, {} wait for work and {} are free, the largest piece {} "
                  "(fragmentation {:.0f} %){}; tried {}. {}. To do: {}",
                  describe_bytes(wanted_.nbytes), kind, device, describe_bytes(snapshot.held),
                  describe_bytes(snapshot.live), describe_bytes(snapshot.cached),
                  describe_bytes(snapshot.waiting), describe_bytes(snapshot.free),
                  describe_bytes(snapshot.largest_free), 100 * snapshot.fragmentation(),
                  describe_holders(snapshot), describe_stages(), refusal_.message(),
                  advice(snapshot));
    } catch (const std::bad_alloc&) {  // the host is out of memory too
      return fail(
          ISTHMUS_ERROR_OUT_OF_MEMORY,
          "a pool cannot allocate {} bytes of {} memory on {}: it holds {}, of which {} are live, "
          "{} cached, {} wait for work and {} are free, the largest piece {}. To do: {}",
          wanted_.nbytes, kind, device, snapshot.held, snapshot.live, snapshot.cached,
          snapshot.waiting, snapshot.free, snapshot.largest_free, advice(snapshot));
    }
  }

  Pool& pool_;
  WantedRun wanted_;
  Queue& queue_;
  Error refusal_ = Error::no_memory();
  const std::uint64_t refusals_before_ = driver_refusals;
  unsigned tried_ = 0;
  bool spared_caches_ = false;
  std::size_t trimmed_ = 0;
  OomCallbacks::Outcome callback_outcome_;
};

Result<RegionHeap::PageRun> Pool::take_run(const WantedRun& wanted, Queue* queue) {
  const auto found = regions_.allocate(wanted.count, wanted.alignment, wanted.entry);
  return found.count != 0 ? Result<RegionHeap::PageRun>{found}
                          : OomStageRunner{*this, wanted, *queue}.run();
}

}  // namespace isthmus
