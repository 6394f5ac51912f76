// SPDX-License-Identifier: Apache-2.0
#pragma once
// The event of an operation that a queue may pass to the driver with a delay (deferring_queue.hpp),
// and whose completion is detected by polling. Thread-safe.

#include "backend/event.hpp"
#include "backend/event_poller.hpp"

namespace isthmus {

class PolledEvent : public Event, private Pollable {
 public:
  PolledEvent() noexcept;

  // Also true if the operation failed before the driver received it.
  [[nodiscard]] bool is_enqueued() const noexcept override {
    return (progress_.load(std::memory_order_acquire) & k_enqueued) != 0;
  }
  // Called once, when the driver has received the operation.
  void mark_enqueued() noexcept;
  // Called instead of `mark_enqueued`: completes the event with `error`.
  void reject(Error error) noexcept;
  // Returns false if the deadline passed first.
  [[nodiscard]] bool wait_until_enqueued(const os::Deadline& until) noexcept;

 protected:
  // Adds the event to the polling thread's list (event_poller.hpp), once it is enqueued.
  void arm() noexcept override;
  // Polls continuously at first, then at increasing intervals.
  void block(const os::Deadline& until) noexcept override;

 private:
  // `k_enqueued`: the driver has received the operation, or it was rejected. `k_armed`: the event
  // must be polled. `k_awaited`: a thread sleeps on `progress_` until `k_enqueued`.
  //
  // Bits are only added, by fetch_or with acquire and release order. Of `mark_enqueued` and `arm`,
  // the one that observes the other's bit starts the polling, so that it starts exactly once.
  enum Progress : std::uint32_t { k_enqueued = 1, k_armed = 2, k_awaited = 4 };

  void begin_polling() noexcept final { retain(); }
  [[nodiscard]] bool poll_once() noexcept final { return pending(); }
  void end_polling() noexcept final { release(); }

  std::uint32_t set_enqueued() noexcept;
  void start_polling() noexcept;

  std::atomic<std::uint32_t> progress_{0};
};

}  // namespace isthmus
