#pragma once
// The event of an operation that the driver may get later than it was submitted
// (holding_queue.hpp), and whose end is found by asking.

#include "backend/event.hpp"

namespace isthmus {

class late_event : public event {
 public:
  late_event() noexcept;

  // Or it failed before the driver got it.
  [[nodiscard]] bool is_put() const noexcept override {
    return (progress_.load(std::memory_order_acquire) & k_put) != 0;
  }
  void mark_put() noexcept;
  // In place of being put.
  void refuse(error why) noexcept;
  // False if it was not by the deadline.
  [[nodiscard]] bool wait_till_put(const os::deadline& until) noexcept;

 protected:
  // Has a thread of the library look at it, from when it is put on (event_watcher.hpp).
  void arm() noexcept override;
  // Asks all the time at first, then at ever longer distances.
  void block(const os::deadline& until) noexcept override;

 private:
  friend class watch_list;
  enum progress : std::uint32_t { k_put = 1, k_armed = 2, k_awaited = 4 };

  std::uint32_t end_holding() noexcept;
  void watch() noexcept;

  std::atomic<std::uint32_t> progress_{0};
  late_event* next_watched_ = nullptr;  // of the list that it is in, which holds a reference
};

}  // namespace isthmus
