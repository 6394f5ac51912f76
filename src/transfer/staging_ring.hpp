#pragma once
// Pinned memory of a device, and queues of it, that copies of plain host memory go by way of.
//
// In lanes: a thread has one for itself while it copies, with some slots, so that it fills or
// empties one while the device copies another. Lanes are made when they are first needed, some
// milliseconds each, and kept for the next copy till the process ends: 32 MiB a device at most.

#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>

#include "backend/queue.hpp"
#include "os/processors.hpp"
#include "transfer/thread_choice.hpp"

namespace isthmus {

class staging_ring {
 public:
  static constexpr std::size_t k_slot_bytes = std::size_t{2} << 20;
  static constexpr std::size_t k_slots = 2;
  // Threads, and so lanes, that copy at a time. With 12 of them 64 MiB went no faster, 1 GiB to the
  // device hardly and 1 GiB back at 48 GB/s against 39 (H100, 16 cores), for 16 MiB more.
  static constexpr std::size_t k_most_lanes = 8;

  struct slot {
    std::byte* memory = nullptr;
    ref<event> in_flight;

    // Till it may be used again.
    [[nodiscard]] result<void> end() {
      return in_flight ? std::exchange(in_flight, nullptr)->wait(std::nullopt) : result<void>{};
    }
  };
  struct lane {
    ref<queue> on;  // null: not made yet
    std::array<slot, k_slots> slots;
    bool taken = false;  // under the ring's lock
  };

  // The device's; never destroyed, and keeps the device's platform.
  [[nodiscard]] static staging_ring& of(device& where);
  explicit staging_ring(device& where);
  staging_ring(const staging_ring&) = delete;
  staging_ring& operator=(const staging_ring&) = delete;
  // Pre: no lane is taken.
  ~staging_ring();

  // Whether there is a lane, free or not; makes the first.
  [[nodiscard]] bool is_there() noexcept;
  // One that nobody uses, waited for where all are in use. Pre: `is_there` was true.
  [[nodiscard]] lane& take() noexcept;
  // The same at once; null where all are in use, or no more can be made.
  [[nodiscard]] lane* try_take() noexcept;
  // The same, of which nothing may be made yet; null where all are in use.
  [[nodiscard]] lane* reserve() noexcept;
  // Whether a reserved one has memory and a queue now. Some milliseconds where it had not.
  [[nodiscard]] bool make_ready(lane& reserved) noexcept;
  // Pre: nothing is in flight there.
  void give_back(lane& used) noexcept;
  // Whether somebody waits for a lane to whom nobody else has promised one: who has several gives
  // one of them back then, so that a small copy need not wait for the end of a large one.
  [[nodiscard]] bool asks_for_one() noexcept;

  // By what copies of plain memory to the device, or back, took.
  [[nodiscard]] thread_choice& threads(bool to_device) noexcept {
    return to_device ? threads_to_ : threads_back_;
  }
  [[nodiscard]] const os::processor_set& processors_near() const noexcept { return near_; }

 private:
  // Pre: under the lock. Null: none is left.
  [[nodiscard]] lane* claim(bool made) noexcept;
  [[nodiscard]] result<void> make(lane& empty);

  ref<device> where_;
  const os::processor_set near_;
  std::mutex lock_;
  std::condition_variable freed_;
  std::array<lane, k_most_lanes> lanes_;
  std::atomic<std::size_t> waiting_{0};  // changed under the lock
  std::size_t promised_ = 0;
  std::atomic<bool> is_there_{false};
  thread_choice threads_to_;
  thread_choice threads_back_;
};

}  // namespace isthmus
