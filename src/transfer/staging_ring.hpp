#pragma once
// Pinned memory of a device, and queues of it, that copies of plain host memory go by way of.
//
// In lanes: a thread has one for itself while it copies, with some slots, so that it fills or
// empties one while the device copies another. Lanes are made when they are first needed, some
// milliseconds each, and kept for the next copy.

#include <array>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "backend/queue.hpp"

namespace isthmus {

class staging_ring {
 public:
  static constexpr std::size_t k_slot_bytes = std::size_t{2} << 20;
  static constexpr std::size_t k_slots = 2;

  struct slot {
    std::byte* memory = nullptr;
    ref<event> in_flight;

    // Till it may be used again.
    [[nodiscard]] result<void> end() {
      return in_flight ? std::exchange(in_flight, nullptr)->wait(std::nullopt) : result<void>{};
    }
  };
  struct lane {
    ref<queue> on;
    std::array<slot, k_slots> slots;
  };

  // The device's; never destroyed, and keeps the device's platform.
  [[nodiscard]] static staging_ring& of(device& where);
  explicit staging_ring(device& where) noexcept : where_{&where} {}

  // A lane that nobody uses, waited for where all are in use. Errors as `context::allocate` and
  // `context::create_queue`.
  [[nodiscard]] result<lane*> take();
  // The same at once; null where there is none.
  [[nodiscard]] lane* try_take();
  // Pre: nothing is in flight there.
  void give_back(lane& used) noexcept;

  // Threads, and so lanes, that copy at a time: more do not copy faster.
  [[nodiscard]] static std::size_t most_lanes() noexcept;

 private:
  // Pre: under the lock. Null: all there may be are there.
  [[nodiscard]] result<lane*> make_lane();

  ref<device> where_;
  std::mutex lock_;
  std::condition_variable freed_;
  std::vector<std::unique_ptr<lane>> lanes_;
  std::vector<lane*> spare_;  // has room for all
};

}  // namespace isthmus
