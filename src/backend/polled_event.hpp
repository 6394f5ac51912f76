// SPDX-License-Identifier: Apache-2.0
#pragma once
// The event of an operation that the driver may receive later than its submission
// (deferring_queue.hpp), and whose completion is found by polling. Thread-safe.

#include "backend/event.hpp"

namespace isthmus {

class PolledEvent : public Event {
 public:
  PolledEvent() noexcept;

  // Also true if the operation failed before the driver received it.
  [[nodiscard]] bool is_put() const noexcept override {
    return (progress_.load(std::memory_order_acquire) & k_put) != 0;
  }
  // Called once, when the driver has received the operation.
  void mark_put() noexcept;
  // Called instead of `mark_put`: completes the event with `why`.
  void refuse(Error why) noexcept;
  // Returns false if the deadline passed first.
  [[nodiscard]] bool wait_till_put(const os::Deadline& until) noexcept;

 protected:
  // Has the polling thread watch the event (event_poller.hpp), from `mark_put` on.
  void arm() noexcept override;
  // Polls continuously at first, then at increasing intervals.
  void block(const os::Deadline& until) noexcept override;

 private:
  friend class PollList;
  // `k_put`: the driver has the operation, or it was refused. `k_armed`: the event is to be
  // watched. `k_awaited`: a thread sleeps on `progress_` until `k_put`.
  //
  // Bits are only ever added, by fetch_or with acquire and release order. Whichever of `mark_put`
  // and `arm` finds the other's bit set starts the watch, so that it starts exactly once.
  enum Progress : std::uint32_t { k_put = 1, k_armed = 2, k_awaited = 4 };

  std::uint32_t end_holding() noexcept;
  void watch() noexcept;

  std::atomic<std::uint32_t> progress_{0};
  PolledEvent* next_watched_ = nullptr;  // in the watch list, which holds a reference
};

}  // namespace isthmus
