// SPDX-License-Identifier: Apache-2.0
#include "transfer/parallel_copy.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <new>

#include "backend/library_threads.hpp"
#include "backend/queue.hpp"
#include "core/threads.hpp"
#include "core/undo.hpp"
#include "os/process.hpp"
#include "transfer/copy_threads.hpp"
#include "transfer/host_driven.hpp"

namespace isthmus {
namespace {

using SlotPair = StagingRing::SlotPair;
using Slot = StagingRing::Slot;

// Smallest chunk: the bytes that are worth a thread, divided among the blocks of its staging slot.
constexpr std::size_t k_least_piece = k_bytes_worth_a_thread / StagingRing::k_slots;

// Within a device a block holds a chunk twice: as read, and as it will be written.
constexpr std::size_t k_half_slot = StagingRing::k_slot_bytes / 2;

std::size_t piece_bytes(std::size_t nbytes, std::size_t threads, bool within) noexcept {
  return std::clamp(nbytes / (threads * StagingRing::k_slots), k_least_piece,
                    within ? k_half_slot : StagingRing::k_slot_bytes);
}

class ParallelCopy final : public HostDriven, public std::enable_shared_from_this<ParallelCopy> {
 public:
  ParallelCopy(const CopyPlan& movement, RingWay way, const CopyThreads& crew, const Cutter& cut)
      : HostDriven{movement},
        crew_{crew},
        parts_{cut(piece_bytes(movement.nbytes, crew.threads, way.within()))},
        nbytes_{movement.nbytes},
        way_{way},
        is_fresh_{movement.is_fresh},
        tells_{crew.is_measured && movement.is_one_run() && !movement.is_fresh},
        ring_{way.ring} {}

 protected:
  // This thread takes part, and as many others as there are chunks, staging slots and threads for.
  [[nodiscard]] Result<void> move() override {
    const os::BoundThread here{on_library_thread() ? crew_.places : os::ProcessorSet{}};
    auto& own = ring_.take();
    const auto began = os::Clock::now();
    const bool all_began = start_helpers();
    work_on(own, false);
    auto outcome = end();
    if (tells_ && outcome && all_began && !gave_lane_back_) {
      ring_.threads(way_.writes).took(nbytes_, crew_.threads, os::Clock::now() - began);
    }
    return outcome;
  }

 private:
  // Returns false if there was no memory or staging slot for a helper; the threads at work then
  // copy everything.
  bool start_helpers() noexcept try {
    for (std::size_t helpers = 1; helpers < crew_.threads; ++helpers) {
      auto* const with = ring_.reserve();
      if (with == nullptr) {
        return false;
      }
      Undo unused{[&] { ring_.give_back(*with); }};
      std::function<void()> work = [self = shared_from_this(), with] { self->help(*with); };
      const std::function<void(Error)> refuse = [this, with](const Error&) {
        ring_.give_back(*with);
      };
      unused.dismiss();
      run_on_library_thread(std::move(work), refuse);
    }
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
  // Runs on a library thread, possibly after the copy has ended. The staging slot is created on
  // this thread so that its memory, too, is near the device.
  void help(SlotPair& with) noexcept {
    const os::DriverCall calls;
    if (!calls || !join()) {
      ring_.give_back(with);
      return;
    }
    const os::BoundThread here{crew_.places};
    if (ring_.make_ready(with)) {
      work_on(with, true);
    } else {
      ring_.give_back(with);
    }
    leave();
  }
  [[nodiscard]] bool join() noexcept {
    const std::lock_guard hold{lock_};
    helpers_ += is_over_ ? 0 : 1;
    return !is_over_;
  }
  void leave() noexcept {
    const std::lock_guard hold{lock_};
    --helpers_;
    helped_.notify_all();
  }
  // Does not wait for threads that have not begun to help: on a busy machine that takes long.
  [[nodiscard]] Result<void> end() {
    std::unique_lock hold{lock_};
    is_over_ = true;
    helped_.wait(hold, [this] { return helpers_ == 0; });
    return failed_ ? Result<void>{std::move(failure_)} : Result<void>{};
  }

  // Called while the device copies the chunk.
  void fault_in(std::size_t index) const noexcept {
    if (is_fresh_) {
      parts_->fault_in(index);
    }
  }

  // `helps`: called by a helper, whose staging slot may be returned before the copy ends.
  void work_on(SlotPair& with, bool helps) noexcept {
    auto outcome = guarded(with, helps);
    for (auto& each : with.slots) {
      auto ended = each.end();
      if (outcome && !ended) {
        outcome = std::move(ended);
      }
    }
    ring_.give_back(with);
    if (!outcome) {
      const std::lock_guard hold{lock_};
      if (!failed_.exchange(true)) {
        failure_ = outcome.take_error();
      }
    }
  }

  [[nodiscard]] Result<void> guarded(SlotPair& with, bool helps) noexcept try {
    return way_.within() ? turn_pieces(with, helps)
           : way_.writes ? write_pieces(with, helps)
                         : read_pieces(with, helps);
  } catch (const std::bad_alloc&) {
    return Error::no_memory();
  }

  // Returns false once no chunk is left, one has failed, or another copy needs this staging slot.
  [[nodiscard]] bool next(std::size_t& index, bool helps) noexcept {
    if (failed_.load(std::memory_order_relaxed)) {
      return false;
    }
    if (helps && ring_.asks_for_one()) {
      gave_lane_back_.store(true, std::memory_order_relaxed);
      return false;
    }
    index = next_.fetch_add(1, std::memory_order_relaxed);
    return index < parts_->count();
  }

  [[nodiscard]] Result<void> write_pieces(SlotPair& with, bool helps) {
    std::size_t index = 0;
    for (std::size_t turn = 0; next(index, helps); ++turn) {
      auto& by_way_of = with.slots[turn % StagingRing::k_slots];
      ISTHMUS_TRY(by_way_of.end());
      parts_->gather(index, by_way_of.memory);
      auto given = parts_->write(*with.queue, index, by_way_of.memory, {});
      ISTHMUS_TRY(given);
      by_way_of.in_flight = *std::move(given);
    }
    return {};
  }

  [[nodiscard]] Result<void> read_pieces(SlotPair& with, bool helps) {
    std::array<std::size_t, StagingRing::k_slots> coming{};
    bool more = true;
    for (std::size_t turn = 0;; ++turn) {
      auto& by_way_of = with.slots[turn % StagingRing::k_slots];
      auto& index = coming[turn % StagingRing::k_slots];
      if (by_way_of.in_flight) {
        ISTHMUS_TRY(by_way_of.end());
        parts_->scatter(index, by_way_of.memory);
      }
      more = more && next(index, helps);
      if (more) {
        auto given = parts_->read(*with.queue, index, by_way_of.memory, {});
        ISTHMUS_TRY(given);
        by_way_of.in_flight = *std::move(given);
        fault_in(index);
      } else if (std::none_of(with.slots.begin(), with.slots.end(),
                              [](const Slot& each) { return bool{each.in_flight}; })) {
        return {};
      }
    }
  }

  // While one of the slot's chunks is converted on the host, another is in flight.
  [[nodiscard]] Result<void> turn_pieces(SlotPair& with, bool helps) {
    std::array<std::size_t, StagingRing::k_slots> coming{};
    for (std::size_t count = coming.size(); count == coming.size();) {
      for (count = 0; count < coming.size() && next(coming[count], helps); ++count) {
        auto& by_way_of = with.slots[count];
        ISTHMUS_TRY(by_way_of.end());
        auto given = parts_->read(*with.queue, coming[count], by_way_of.memory, {});
        ISTHMUS_TRY(given);
        by_way_of.in_flight = *std::move(given);
      }
      for (std::size_t i = 0; i < count; ++i) {
        auto& by_way_of = with.slots[i];
        ISTHMUS_TRY(by_way_of.end());
        const auto* const turned =
            parts_->turn(coming[i], by_way_of.memory, by_way_of.memory + k_half_slot);
        auto given = parts_->write(*with.queue, coming[i], turned, {});
        ISTHMUS_TRY(given);
        by_way_of.in_flight = *std::move(given);
      }
    }
    return {};
  }

  const CopyThreads crew_;
  const std::unique_ptr<const Parts> parts_;
  const std::size_t nbytes_;
  const RingWay way_;
  const bool is_fresh_;
  const bool tells_;  // whether to report the time of this copy
  StagingRing& ring_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> failed_{false};
  std::atomic<bool> gave_lane_back_{false};
  std::mutex lock_;
  std::condition_variable helped_;
  std::size_t helpers_ = 0;
  bool is_over_ = false;
  Error failure_;
};

}  // namespace

Submitted copy_by_crew(Queue& queue, const CopyPlan& movement, RingWay way, const Cutter& cut,
                       TransferOptions options) {
  auto* const earlier = way.converts ? nullptr : &way.ring.threads(way.writes);
  auto crew = crew_for(way.ring, movement.nbytes, earlier);
  ISTHMUS_TRY(crew);
  return carry_out(&queue, std::make_shared<ParallelCopy>(movement, way, *crew, cut),
                   std::move(options));
}

}  // namespace isthmus
