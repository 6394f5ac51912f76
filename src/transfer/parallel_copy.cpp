// SPDX-License-Identifier: Apache-2.0
#include "transfer/parallel_copy.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <new>

#include "backend/library_threads.hpp"
#include "backend/queue.hpp"
#include "core/expects.hpp"
#include "core/lock_guard.hpp"
#include "core/mutex.hpp"
#include "core/thread_safety.hpp"
#include "core/threads.hpp"
#include "core/undo.hpp"
#include "os/process.hpp"
#include "transfer/copy_threads.hpp"
#include "transfer/host_driven.hpp"

namespace isthmus {
namespace {

using SlotPair = StagingRing::SlotPair;
using Slot = StagingRing::Slot;

// Smallest chunk: the minimum bytes for one thread, divided among the slots of its pair.
constexpr std::size_t k_min_chunk_bytes = k_min_bytes_per_thread / StagingRing::k_slots;

// If both sides are device memory, a slot holds a chunk twice: before and after its conversion.
constexpr std::size_t k_half_slot = StagingRing::k_slot_bytes / 2;

std::size_t chunk_bytes(std::size_t nbytes, std::size_t threads, bool same_device) noexcept {
  return std::clamp(nbytes / (threads * StagingRing::k_slots), k_min_chunk_bytes,
                    same_device ? k_half_slot : StagingRing::k_slot_bytes);
}

class ParallelCopy final : public HostDriven, public std::enable_shared_from_this<ParallelCopy> {
 public:
  ParallelCopy(const CopyPlan& plan, RingDirection route, const CopyThreads& threads,
               const Cutter& cut)
      : HostDriven{plan},
        threads_{threads},
        chunks_{cut(chunk_bytes(plan.nbytes, threads.threads, route.is_within_device()))},
        nbytes_{plan.nbytes},
        route_{route},
        is_fresh_{plan.is_fresh},
        reports_time_{threads.is_measured && plan.is_one_run() && !plan.is_fresh},
        ring_{route.ring} {}

 protected:
  // Copies on this thread and on helper threads. Fewer helpers start than `threads_` allows if slot
  // pairs or memory are short.
  [[nodiscard]] Result<void> move() override {
    const os::BoundThread binding{on_library_thread() ? threads_.processors : os::ProcessorSet{}};
    auto& own_pair = ring_.acquire();
    const auto start = os::Clock::now();
    const bool all_started = start_helpers();
    copy_chunks(own_pair, false);
    auto outcome = end();
    if (reports_time_ && outcome && all_started && !returned_pair_early_) {
      ring_.threads(route_.writes).record(nbytes_, threads_.threads, os::Clock::now() - start);
    }
    return outcome;
  }

 private:
  // Starts the helper threads. Returns false if there was no memory or slot pair for one of them;
  // the threads that already run then copy everything.
  bool start_helpers() noexcept try {
    for (std::size_t helpers = 1; helpers < threads_.threads; ++helpers) {
      auto* const pair = ring_.reserve();
      if (pair == nullptr) {
        return false;
      }
      Undo release_pair{[&] { ring_.release(*pair); }};
      std::function<void()> work = [self = shared_from_this(), pair] { self->run_helper(*pair); };
      const std::function<void(Error)> on_failure = [this, pair](const Error&) {
        ring_.release(*pair);
      };
      release_pair.dismiss();
      run_on_library_thread(std::move(work), on_failure);
    }
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
  // Runs on a library thread, possibly after the copy has completed. The slot pair is created on
  // this thread, which runs near the device, so that its memory is near the device too.
  void run_helper(SlotPair& pair) noexcept {
    const os::DriverCall calls;
    if (!calls || !join()) {
      ring_.release(pair);
      return;
    }
    const os::BoundThread binding{threads_.processors};
    if (ring_.make_ready(pair)) {
      copy_chunks(pair, true);
    } else {
      ring_.release(pair);
    }
    leave();
  }
  [[nodiscard]] bool join() noexcept {
    const LockGuard hold{lock_};
    helpers_ += has_ended_ ? 0 : 1;
    return !has_ended_;
  }
  void leave() noexcept {
    const LockGuard hold{lock_};
    --helpers_;
    helper_left_.notify_all();
  }
  // Waits only for helpers that have started copying: on a busy machine the others may start late.
  [[nodiscard]] Result<void> end() {
    const LockGuard hold{lock_};
    has_ended_ = true;
    while (helpers_ != 0) {
      helper_left_.wait(lock_);
    }
    return failed_ ? Result<void>{std::move(failure_)} : Result<void>{};
  }

  // Faults in the destination pages of a chunk while the device reads the chunk.
  void fault_in(std::size_t index) const noexcept {
    if (is_fresh_) {
      chunks_->fault_in(index);
    }
  }

  // If `is_helper` is true the calling thread is a helper and may release its slot pair before the
  // copy is complete.
  void copy_chunks(SlotPair& pair, bool is_helper) noexcept {
    auto outcome = try_copy_chunks(pair, is_helper);
    for (auto& each : pair.slots) {
      auto status = each.end();
      if (outcome && !status) {
        outcome = std::move(status);
      }
    }
    ring_.release(pair);
    if (!outcome) {
      const LockGuard hold{lock_};
      if (!failed_.exchange(true)) {
        failure_ = outcome.take_error();
      }
    }
  }

  [[nodiscard]] Result<void> try_copy_chunks(SlotPair& pair, bool is_helper) noexcept try {
    return route_.is_within_device() ? convert_chunks(pair, is_helper)
           : route_.writes           ? write_chunks(pair, is_helper)
                                     : read_chunks(pair, is_helper);
  } catch (const std::bad_alloc&) {
    return Error::no_memory();
  }

  // Sets `index` to the next chunk. Returns false if no chunk remains, a chunk has failed, or
  // another copy needs this slot pair.
  [[nodiscard]] bool next(std::size_t& index, bool is_helper) noexcept {
    if (failed_.load(std::memory_order_relaxed)) {
      return false;
    }
    if (is_helper && ring_.must_release_one()) {
      returned_pair_early_.store(true, std::memory_order_relaxed);
      return false;
    }
    index = next_.fetch_add(1, std::memory_order_relaxed);
    return index < chunks_->count();
  }

  [[nodiscard]] Result<void> write_chunks(SlotPair& pair, bool is_helper) {
    std::size_t index = 0;
    for (std::size_t round = 0; next(index, is_helper); ++round) {
      auto& slot = pair.slots[round % StagingRing::k_slots];
      ISTHMUS_TRY(slot.end());
      chunks_->gather(index, slot.memory);
      auto submitted = chunks_->write(*pair.queue, index, slot.memory, {});
      ISTHMUS_TRY(submitted);
      slot.in_flight = *std::move(submitted);
    }
    return {};
  }

  [[nodiscard]] Result<void> read_chunks(SlotPair& pair, bool is_helper) {
    std::array<std::size_t, StagingRing::k_slots> indices{};
    bool more = true;
    for (std::size_t round = 0;; ++round) {
      auto& slot = pair.slots[round % StagingRing::k_slots];
      auto& index = indices[round % StagingRing::k_slots];
      if (slot.in_flight) {
        ISTHMUS_TRY(slot.end());
        chunks_->scatter(index, slot.memory);
      }
      more = more && next(index, is_helper);
      if (more) {
        auto submitted = chunks_->read(*pair.queue, index, slot.memory, {});
        ISTHMUS_TRY(submitted);
        slot.in_flight = *std::move(submitted);
        fault_in(index);
      } else if (std::none_of(pair.slots.begin(), pair.slots.end(),
                              [](const Slot& each) { return bool{each.in_flight}; })) {
        return {};
      }
    }
  }

  // While the host converts the chunk in one slot, the chunk in the other slot is in flight.
  [[nodiscard]] Result<void> convert_chunks(SlotPair& pair, bool is_helper) {
    std::array<std::size_t, StagingRing::k_slots> indices{};
    for (std::size_t count = indices.size(); count == indices.size();) {
      for (count = 0; count < indices.size() && next(indices[count], is_helper); ++count) {
        auto& slot = pair.slots[count];
        ISTHMUS_TRY(slot.end());
        auto submitted = chunks_->read(*pair.queue, indices[count], slot.memory, {});
        ISTHMUS_TRY(submitted);
        slot.in_flight = *std::move(submitted);
      }
      for (std::size_t i = 0; i < count; ++i) {
        auto& slot = pair.slots[i];
        ISTHMUS_TRY(slot.end());
        const auto* const converted =
            chunks_->convert(indices[i], slot.memory, slot.memory + k_half_slot);
        auto submitted = chunks_->write(*pair.queue, indices[i], converted, {});
        ISTHMUS_TRY(submitted);
        slot.in_flight = *std::move(submitted);
      }
    }
    return {};
  }

  const CopyThreads threads_;
  const std::unique_ptr<const CopyChunks> chunks_;
  const std::size_t nbytes_;
  const RingDirection route_;
  const bool is_fresh_;
  const bool reports_time_;  // whether to record the time of this copy for the choice of threads
  StagingRing& ring_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> failed_{false};
  std::atomic<bool> returned_pair_early_{false};
  Mutex lock_;
  ConditionVariable helper_left_;
  std::size_t helpers_ ISTHMUS_GUARDED_BY(lock_) = 0;
  bool has_ended_ ISTHMUS_GUARDED_BY(lock_) = false;
  Error failure_ ISTHMUS_GUARDED_BY(lock_);
};

}  // namespace

Submitted copy_in_parallel(Queue& queue, const CopyPlan& plan, RingDirection route,
                           const Cutter& cut, TransferOptions options) {
  ISTHMUS_EXPECTS(route.reads || route.writes);
  auto* const choice = route.converts ? nullptr : &route.ring.threads(route.writes);
  auto threads = copy_threads_for(route.ring, plan.nbytes, choice);
  ISTHMUS_TRY(threads);
  return carry_out(&queue, std::make_shared<ParallelCopy>(plan, route, *threads, cut),
                   std::move(options));
}

}  // namespace isthmus
