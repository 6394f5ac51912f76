// SPDX-License-Identifier: Apache-2.0
// What a pool does if it finds no free page run: the out-of-memory stages (`rung`, oom_stages.hpp)
// in order, then the error.

#include <algorithm>
#include <chrono>
#include <new>
#include <string>

#include "core/sizes.hpp"
#include "core/undo.hpp"
#include "memory/deferred_release.hpp"
#include "memory/holders.hpp"
#include "memory/oom_callbacks.hpp"
#include "memory/other_pools.hpp"
#include "memory/pool.hpp"
#include "memory/snapshot.hpp"
#include "os/futex.hpp"

namespace isthmus {

namespace {

// How long a thread may have to wait for a CPU on a loaded machine. Many times what querying an
// idle queue takes, and little compared with a driver's first touch of memory.
constexpr std::chrono::nanoseconds k_soon = std::chrono::milliseconds{4};

}  // namespace

// One request's way through the out-of-memory stages. Used by one thread.
class Pool::OomStageRunner {
 public:
  OomStageRunner(Pool& pool, const WantedRun& wanted, Queue& queue) noexcept
      : of_{pool}, wanted_{wanted}, queue_{queue} {}

  [[nodiscard]] Result<RegionHeap::PageRun> climb() {
    if (auto never = of_.source_.fits(wanted_.least * k_pool_page_bytes); !never) {
      refusal_ = never.take_error();
      return no_memory();
    }
    for (unsigned each = 0; each < k_rungs; ++each) {
      const auto step = static_cast<OomStage>(each);
      if (!may(step)) {
        continue;
      }
      of_.pressure_.tried(step);
      auto found = try_or_refuse(step);
      if (found) {
        of_.pressure_.served(step);
        return found;
      }
      if (!is_short(found)) {
        return found;
      }
      tried_ |= 1U << static_cast<unsigned>(step);
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
  [[nodiscard]] bool may(OomStage step) const noexcept {
    if ((step == OomStage::wait && of_.longest_wait_ <= of_.longest_wait_.zero()) ||
        (step == OomStage::device_wait &&
         (!of_.device_wait_ || wanted_.whom == QueueSlots::k_quiet)) ||
        (step == OomStage::budget && of_.source_.shared() == nullptr && !is_drivers_refusal())) {
      return false;
    }
    return step <= OomStage::grow || !(no_wait != 0 || in_continuation());
  }

  // A thread with many caches (`lane`) would flush them all for each slab, and the caches would
  // then take blocks from one another: an allocation and its free took 1,400 ns on 64 queues used
  // alternately, and the pool never grew.
  [[nodiscard]] bool pays_to_empty_lanes() const noexcept {
    return wanted_.nbytes > SizeClasses::k_largest ||
           ThreadCache::pays_to_empty_own(of_, wanted_.count);
  }

  [[nodiscard]] Result<RegionHeap::PageRun> try_or_refuse(OomStage step) {
    try {
      return try_at(step);
    } catch (const std::bad_alloc&) {  // the host is out of memory too
      return Error::no_memory();
    }
  }

  [[nodiscard]] Result<RegionHeap::PageRun> try_at(OomStage step) {
    switch (step) {
      case OomStage::settle: return settle_first();
      case OomStage::revoke: return revoke();
      case OomStage::grow: return grow();
      case OomStage::trim: return trim();
      case OomStage::budget: return budget();
      case OomStage::device_wait: return wait_on_device();
      case OomStage::reclaim: return reclaim();
      case OomStage::wait: return wait();
    }
    return refusal_;
  }

  // False if only a limit or budget refused the request, which pools outside of it cannot change.
  [[nodiscard]] bool is_drivers_refusal() const noexcept {
    return driver_refusals != refusals_before_;
  }
  [[nodiscard]] DriverShortage shortage_of_driver() const noexcept {
    return {of_.device(), of_.kind(), needed(), &of_};
  }
  [[nodiscard]] Result<RegionHeap::PageRun> budget() {
    auto found = of_.grow_with_siblings(wanted_);
    return is_drivers_refusal()
               ? with_other_pools(
                     shortage_of_driver(), [&] { return again(); }, std::move(found))
               : std::move(found);
  }

  [[nodiscard]] Result<RegionHeap::PageRun> take(RegionHeap::Cut cut = RegionHeap::Cut::any) {
    const auto found = of_.regions_.take(wanted_.count, wanted_.alignment, wanted_.whom, cut);
    return found.count != 0 ? Result<RegionHeap::PageRun>{found}
                            : Result<RegionHeap::PageRun>{refusal_};
  }
  [[nodiscard]] Result<RegionHeap::PageRun> coalesce(RegionHeap::Cut cut = RegionHeap::Cut::any) {
    of_.coalesce();
    spared_lanes_ = false;
    return take(cut);
  }
  [[nodiscard]] Result<RegionHeap::PageRun> settle_first() {
    if (pays_to_empty_lanes()) {
      return coalesce(RegionHeap::Cut::sparing_idle);
    }
    spared_lanes_ = true;
    of_.coalesce_shared();
    return take(RegionHeap::Cut::sparing_idle);
  }
  [[nodiscard]] Result<RegionHeap::PageRun> revoke() {
    return of_.revoke_idle_thread_caches() ? coalesce(RegionHeap::Cut::sparing_idle)
                                           : Result<RegionHeap::PageRun>{refusal_};
  }
  // Tries in order: pending releases; the driver; if it refuses, regions that earlier stages spared
  // (`RegionHeap::cut`); this thread's caches if they were spared; and from here on the least
  // number of pages.
  [[nodiscard]] Result<RegionHeap::PageRun> grow() {
    if (auto found = take_on_demand()) {
      return found;
    }
    if (auto found = take_late(); !is_short(found)) {
      return found;
    }
    auto found = grow_or_take();
    if (is_short(found) && spared_lanes_) {
      found = coalesce();
    }
    if (!is_short(found) || wanted_.count == wanted_.least) {
      return found;
    }
    wanted_.count = wanted_.least;
    return grow_or_take();
  }
  // From pending releases whose queue is queried on demand only.
  [[nodiscard]] Result<RegionHeap::PageRun> take_on_demand() {
    if (no_wait != 0 || !release_much_on_demand()) {
      return refusal_;
    }
    of_.coalesce_shared();
    return take();
  }
  // Waits for pending releases (deferred_release.hpp) if they are half of what the pool holds or
  // more. Otherwise a program that releases memory faster than the library thread queries the
  // driver would grow the pool without bound. If no memory is released in time, the pool grows
  // without a wait until it holds twice as much or a release was made; the next wait is twice as
  // long.
  [[nodiscard]] Result<RegionHeap::PageRun> take_late() {
    if (!may_wait_for_late()) {
      return refusal_;
    }
    const auto longest = std::min(k_soon * (1 << of_.late_.waits_in_vain), of_.longest_wait_);
    const auto until = os::deadline_after(longest.count());
    while (most_is_late()) {
      const auto seen = reclaims();
      auto came = wait_for_reclaim(seen, until);
      ISTHMUS_TRY(came);
      if (!*came) {
        if (os::Clock::now() >= until) {  // earlier only if there was nothing to wait for
          of_.late_.note_in_vain(seen, held());
        }
        return refusal_;
      }
      of_.coalesce_shared();
      if (auto found = take()) {
        of_.late_.note_served();
        return found;
      }
    }
    return refusal_;
  }
  [[nodiscard]] bool may_wait_for_late() const noexcept {
    return most_is_late() && of_.longest_wait_ > of_.longest_wait_.zero() && no_wait == 0 &&
           !in_continuation() && of_.late_.is_worth_a_wait(reclaims(), held());
  }
  [[nodiscard]] std::size_t held() const noexcept { return of_.source_.counts().held_bytes(); }
  [[nodiscard]] bool most_is_late() const noexcept {
    const auto late = of_.late_.bytes.load(std::memory_order_relaxed);
    return late > 0 && static_cast<std::size_t>(late) >= held() / 2;
  }
  [[nodiscard]] Result<RegionHeap::PageRun> grow_or_take() {
    auto grown = of_.grow(wanted_);
    if (!is_short(grown)) {
      return grown;
    }
    refusal_ = grown.take_error();
    return take();
  }
  [[nodiscard]] Result<RegionHeap::PageRun> trim() {
    const auto given_back = of_.trim(0);
    trimmed_ += given_back;
    auto found = take();  // from slabs that the trim dissolved
    return found || given_back == 0 ? std::move(found) : of_.grow(wanted_);
  }
  // Tries again after memory may have been freed.
  [[nodiscard]] Result<RegionHeap::PageRun> again() {
    if (auto found = coalesce()) {
      return found;
    }
    auto grown = of_.grow_with_siblings(wanted_);
    return is_short(grown) ? trim() : std::move(grown);
  }

  [[nodiscard]] Result<RegionHeap::PageRun> wait_on_device() {
    auto found = of_.regions_.take(wanted_.count, wanted_.alignment, QueueSlots::k_anybody,
                                   RegionHeap::Cut::any);
    if (found.count == 0) {
      return refusal_;
    }
    Undo back{[&] { of_.regions_.give(found.first, found.until); }};
    if (auto waits = of_.slots_->wait_behind(found.until, queue_); !waits) {
      if (waits.failure().code() == ISTHMUS_ERROR_CALLBACK) {
        return waits.take_error();  // interrupted
      }
      return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
                  "the queue could not be made to wait for the work that uses free memory: {}",
                  waits.failure().message());
    }
    back.dismiss();
    // All of the run is ordered on this queue now. If it becomes a slab, the blocks that this
    // request does not take are usable by the next request on the queue.
    found.until = of_.slots_->next(wanted_.whom);
    return found;
  }

  [[nodiscard]] Result<RegionHeap::PageRun> reclaim() {
    reclaimed_ = process_reclaimers().ask(request_for(of_.device(), of_.kind(), needed()));
    return reclaimed_.asked != 0 ? again() : Result<RegionHeap::PageRun>{refusal_};
  }

  // Never waits indefinitely: collectives may wait for one another, and for this thread
  // (tensorflow#50699). Waits first for work that freed memory waits for, on the request's own
  // queue only if chunks wait for it that no request can use (`RegionHeap::late_bytes`). Then
  // waits for pending releases, and for other threads that are in the upstream resource.
  [[nodiscard]] Result<RegionHeap::PageRun> wait() {
    const auto until = os::deadline_after(of_.longest_wait_.count());
    auto first = wait_for(of_.slots_->running(wanted_.whom), until);
    if (is_short(first) && of_.regions_.late_bytes() != 0) {
      first = wait_for(of_.slots_->running(), until);
    }
    if (!is_short(first)) {
      return first;
    }
    for (auto others = of_.regions_.at_upstream();;) {
      const auto seen = reclaims();
      const auto seen_upstream = of_.regions_.look_upstream();
      auto found = again();
      if (!is_short(found)) {
        return found;
      }
      refusal_ = found.take_error();
      auto came_back = others != 0 ? of_.regions_.wait_for_upstream(seen_upstream, until) : false;
      ISTHMUS_TRY(came_back);
      if (*came_back) {
        --others;
        continue;
      }
      const bool more_is_late = of_.late_.bytes.load(std::memory_order_relaxed) > 0;
      auto reclaimed = more_is_late ? wait_for_reclaim(seen, until) : false;
      ISTHMUS_TRY(reclaimed);
      if (!*reclaimed) {
        return try_last(until);
      }
    }
  }
  // Memory may have been returned since the last try. If the driver refused, first waits for work
  // that the memory of other pools waits for.
  [[nodiscard]] Result<RegionHeap::PageRun> try_last(const os::Deadline& until) {
    if (is_drivers_refusal()) {
      ISTHMUS_TRY(trim_after_work(shortage_of_driver(), until));
    }
    return again();
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
    static_cast<void>(of_.slots_->running());
    return coalesce();
  }

  // The stages tried and what they released, for the error message.
  [[nodiscard]] std::string account() const {
    std::string text;
    for (unsigned each = 0; each < k_rungs; ++each) {
      if ((tried_ >> each & 1) != 0) {
        text += text.empty() ? "" : ", ";
        text += rung_name(static_cast<OomStage>(each));
      }
    }
    return text.empty() ? "nothing"
                        : fmt::format("{} ({} released, {} by {} reclaim callback{})", text,
                                      describe_bytes(trimmed_), describe_bytes(reclaimed_.bytes),
                                      reclaimed_.asked, reclaimed_.asked == 1 ? "" : "s");
  }
  [[nodiscard]] const char* advice(const Snapshot& seen) const noexcept {
    if (seen.largest_free >= needed()) {
      return "it has become free in the meantime: retry";
    }
    if (seen.free >= needed()) {
      return "it is free in pieces only: request less at a time, or free the blocks between them";
    }
    if (seen.free + seen.waiting >= needed()) {
      return "it is free once pending work has completed: wait for the queues, or longer (wait_ns)";
    }
    if (seen.free + seen.waiting + seen.cached >= needed()) {
      return "thread caches hold it, or it lies between live blocks: retry, or request less at a "
             "time";
    }
    return of_.source_.remedy(needed(), seen.free);
  }
  [[nodiscard]] Error no_memory() const {
    Shortage what{of_.count_with_largest_request(), {}, of_.kind(), wanted_.nbytes, tried_};
    of_.device().properties().filter.copy(what.device.data(), what.device.size() - 1);
    find_holders(of_, what.seen);
    what.advice = advice(what.seen);
    auto made = told(what.seen);
    remember_shortage(made, what);
    return made;
  }
  [[nodiscard]] Error told(const Snapshot& seen) const noexcept {
    const auto* kind = kind_name(of_.kind());
    const auto& where = of_.device().properties().filter;
    try {
      return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
                  "a pool cannot allocate {} of {} memory on {}: it holds {}, of which {} are "
                  "live, {} cached, {} wait for work and {} are free, the largest piece {} "
                  "(fragmentation {:.0f} %){}; tried {}. {}. To do: {}",
                  describe_bytes(wanted_.nbytes), kind, where, describe_bytes(seen.held),
                  describe_bytes(seen.live), describe_bytes(seen.cached),
                  describe_bytes(seen.waiting), describe_bytes(seen.free),
                  describe_bytes(seen.largest_free), 100 * seen.fragmentation(),
                  describe_holders(seen), account(), refusal_.message(), advice(seen));
    } catch (const std::bad_alloc&) {  // the host is out of memory too
      return fail(
          ISTHMUS_ERROR_OUT_OF_MEMORY,
          "a pool cannot allocate {} bytes of {} memory on {}: it holds {}, of which {} are live, "
          "{} cached, {} wait for work and {} are free, the largest piece {}. To do: {}",
          wanted_.nbytes, kind, where, seen.held, seen.live, seen.cached, seen.waiting, seen.free,
          seen.largest_free, advice(seen));
    }
  }

  Pool& of_;
  WantedRun wanted_;
  Queue& queue_;
  Error refusal_ = Error::no_memory();
  const std::uint64_t refusals_before_ = driver_refusals;
  unsigned tried_ = 0;
  bool spared_lanes_ = false;
  std::size_t trimmed_ = 0;
  OomCallbacks::Outcome reclaimed_;
};

Result<RegionHeap::PageRun> Pool::take_run(const WantedRun& wanted, Queue* queue) {
  const auto found = regions_.take(wanted.count, wanted.alignment, wanted.whom);
  return found.count != 0 ? Result<RegionHeap::PageRun>{found}
                          : OomStageRunner{*this, wanted, *queue}.climb();
}

}  // namespace isthmus
