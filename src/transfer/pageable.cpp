#include "transfer/pageable.hpp"

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
#include "transfer/copy_crew.hpp"
#include "transfer/host_driven.hpp"
#include "transfer/staging_ring.hpp"

namespace isthmus {
namespace {

using lane = staging_ring::lane;
using slot = staging_ring::slot;

// A thread is worth as many pieces as its lane has slots.
constexpr std::size_t k_least_piece = k_bytes_worth_a_thread / staging_ring::k_slots;

// For less a thread that carries the copy out while its caller goes on costs more than it saves.
constexpr std::size_t k_least_behind = std::size_t{2} << 20;

std::size_t piece_bytes(std::size_t nbytes, std::size_t threads) noexcept {
  return std::clamp(nbytes / (threads * staging_ring::k_slots), k_least_piece,
                    staging_ring::k_slot_bytes);
}

class pageable_copy final : public host_driven, public std::enable_shared_from_this<pageable_copy> {
 public:
  pageable_copy(const movement& what, staging_ring& ring, const copy_crew& crew)
      : host_driven{what},
        crew_{crew},
        parts_{what.cut(piece_bytes(what.nbytes, crew.threads))},
        nbytes_{what.nbytes},
        to_device_{!what.destination.host_can_touch()},
        is_fresh_{what.is_fresh},
        tells_{crew.is_measured && what.is_one_run() && !what.is_fresh},
        ring_{ring} {}

 protected:
  // This thread takes part, and others as there are pieces, lanes and threads.
  [[nodiscard]] result<void> move() override {
    const os::bound_thread here{on_library_thread() ? crew_.places : os::processor_set{}};
    auto& own = ring_.take();
    const auto began = os::clock::now();
    const bool all_began = start_helpers();
    work_on(own, false);
    auto outcome = end();
    if (tells_ && outcome && all_began && !gave_lane_back_) {
      ring_.threads(to_device_).took(nbytes_, crew_.threads, os::clock::now() - began);
    }
    return outcome;
  }

 private:
  // Where there is no memory for more, or no lane, who is at work does it all; false then.
  bool start_helpers() noexcept try {
    for (std::size_t helpers = 1; helpers < crew_.threads; ++helpers) {
      auto* const with = ring_.reserve();
      if (with == nullptr) {
        return false;
      }
      undo unused{[&] { ring_.give_back(*with); }};
      std::function<void()> work = [self = shared_from_this(), with] { self->help(*with); };
      const std::function<void(error)> refuse = [this, with](const error&) {
        ring_.give_back(*with);
      };
      unused.dismiss();
      run_on_library_thread(std::move(work), refuse);
    }
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
  // On a thread of the library, which may come to it too late. The lane is made here, so that its
  // memory is near the device, too.
  void help(lane& with) noexcept {
    const os::driver_call calls;
    if (!calls || !join()) {
      ring_.give_back(with);
      return;
    }
    const os::bound_thread here{crew_.places};
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
  // A thread that has not begun to help yet is not waited for: on a busy machine that takes long.
  [[nodiscard]] result<void> end() {
    std::unique_lock hold{lock_};
    is_over_ = true;
    helped_.wait(hold, [this] { return helpers_ == 0; });
    return failed_ ? result<void>{std::move(failure_)} : result<void>{};
  }

  // While the device copies the part.
  void fault_in(std::size_t index) const noexcept {
    if (is_fresh_) {
      parts_->fault_in(index);
    }
  }

  // `helps`: others are at work too, so that the lane may be had back early.
  void work_on(lane& with, bool helps) noexcept {
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

  [[nodiscard]] result<void> guarded(lane& with, bool helps) noexcept try {
    return to_device_ ? write_pieces(with, helps) : read_pieces(with, helps);
  } catch (const std::bad_alloc&) {
    return error::no_memory();
  }

  // False once there is none left, or some failed, or the lane is wanted back.
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

  [[nodiscard]] result<void> write_pieces(lane& with, bool helps) {
    std::size_t index = 0;
    for (std::size_t turn = 0; next(index, helps); ++turn) {
      auto& by_way_of = with.slots[turn % staging_ring::k_slots];
      ISTHMUS_TRY(by_way_of.end());
      parts_->gather(index, by_way_of.memory);
      auto given = parts_->write(*with.on, index, by_way_of.memory, {});
      ISTHMUS_TRY(given);
      by_way_of.in_flight = *std::move(given);
    }
    return {};
  }

  [[nodiscard]] result<void> read_pieces(lane& with, bool helps) {
    std::array<std::size_t, staging_ring::k_slots> coming{};
    bool more = true;
    for (std::size_t turn = 0;; ++turn) {
      auto& by_way_of = with.slots[turn % staging_ring::k_slots];
      auto& index = coming[turn % staging_ring::k_slots];
      if (by_way_of.in_flight) {
        ISTHMUS_TRY(by_way_of.end());
        parts_->scatter(index, by_way_of.memory);
      }
      more = more && next(index, helps);
      if (more) {
        auto given = parts_->read(*with.on, index, by_way_of.memory, {});
        ISTHMUS_TRY(given);
        by_way_of.in_flight = *std::move(given);
        fault_in(index);
      } else if (std::none_of(with.slots.begin(), with.slots.end(),
                              [](const slot& each) { return bool{each.in_flight}; })) {
        return {};
      }
    }
  }

  const copy_crew crew_;
  const std::unique_ptr<const parts> parts_;
  const std::size_t nbytes_;
  const bool to_device_;
  const bool is_fresh_;
  const bool tells_;  // how long it took
  staging_ring& ring_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> failed_{false};
  std::atomic<bool> gave_lane_back_{false};
  std::mutex lock_;
  std::condition_variable helped_;
  std::size_t helpers_ = 0;
  bool is_over_ = false;
  error failure_;
};

// Whether one side is a device's and the other the host's, its own or of another driver: the
// device's knows neither.
bool is_of_a_device(const endpoint& memory, const endpoint& plain) noexcept {
  return !memory.host_can_touch() && plain.host_can_touch();
}

// Whether it is written in short runs that lie apart.
bool is_scattered(const movement& what) noexcept {
  constexpr std::size_t k_short = 32;
  if (what.block == nullptr) {
    const auto& rows = what.rows;
    return rows.height > 1 && rows.width < k_short && rows.destination_pitch != rows.width;
  }
  const auto shape = simplest(*what.block, side::destination);
  return shape.rank != 0 && shape.width < k_short &&
         shape.dimensions[shape.rank - 1].destination_stride != shape.width;
}

// Such runs cross the bus one by one where the device writes them itself: 2 Mi of 4 bytes in 4.3 ms
// (H100).
bool is_scattered_to_pinned(const device& where, const movement& what) {
  const auto& pinned = what.destination.memory;
  return what.nbytes >= k_least_behind && (!pinned || pinned->what().kind == ISTHMUS_KIND_HOST) &&
         is_scattered(what) && where.copies_strided();
}

// Whether that goes faster by way of pinned memory of the device's.
bool is_faster_staged(const device& where, const movement& what, bool to_device) {
  if (!to_device && is_scattered_to_pinned(where, what)) {
    return true;
  }
  const auto* const first = (to_device ? what.source : what.destination).pointer;
  const auto* const last = first + (to_device ? what.source_bytes : what.destination_bytes) - 1;
  return what.is_in_pieces() ? where.copies_pieces_better_staged(first, last)
                             : where.copies_better_staged(first, last, what.nbytes, to_device);
}

}  // namespace

// Who puts work to the queue's stream himself expects it behind a copy that was put there before:
// nothing that the host carries out later is. Without pinned memory the driver does what it can.
bool is_better_staged(const queue& on, const movement& what, bool blocking) {
  const bool to_device = is_of_a_device(what.destination, what.source);
  if (!to_device && !is_of_a_device(what.source, what.destination)) {
    return false;
  }
  const bool is_small = !what.is_in_pieces() && what.nbytes < k_least_behind;
  if (!blocking && (is_small || on.has_others_work())) {
    return false;
  }
  auto& where = (to_device ? what.destination : what.source).memory->where();
  return is_faster_staged(where, what, to_device) && staging_ring::of(where).is_there();
}

submitted copy_pageable(queue& on, const movement& what, transfer_options options) {
  const bool to_device = !what.destination.host_can_touch();
  auto& where = (to_device ? what.destination : what.source).memory->where();
  auto& ring = staging_ring::of(where);
  auto crew = crew_for(ring, what.nbytes, to_device);
  ISTHMUS_TRY(crew);
  return carry_out(&on, std::make_shared<pageable_copy>(what, ring, *crew), std::move(options));
}

}  // namespace isthmus
