// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pinned memory of a device, with queues of the device, for copies of pageable host memory.
// Thread-safe.
//
// It is divided into staging slots (`lane`). A thread has one for itself while it copies; each has
// several blocks (`slot`), so that the thread fills or empties one while the device copies another.
// Staging slots are created on first use, which takes some milliseconds each, and kept until the
// process ends: 32 MiB a device at most.

#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>

#include "backend/queue.hpp"
#include "os/processors.hpp"
#include "transfer/thread_choice.hpp"

namespace isthmus {

class StagingRing {
 public:
  static constexpr std::size_t k_slot_bytes = std::size_t{2} << 20;
  static constexpr std::size_t k_slots = 2;
  // Staging slots, and so threads that copy at a time. With 12 of them 64 MiB went no faster, 1 GiB
  // to the device hardly faster, and 1 GiB back at 48 GB/s against 39 (H100, 16 cores), for 16 MiB
  // more.
  static constexpr std::size_t k_most_lanes = 8;

  struct Slot {
    std::byte* memory = nullptr;
    Ref<Event> in_flight;

    // Waits until it may be used again.
    [[nodiscard]] Result<void> end() {
      return in_flight ? std::exchange(in_flight, nullptr)->wait(std::nullopt) : Result<void>{};
    }
  };
  struct SlotPair {
    Ref<Queue> queue;  // null: not created yet
    std::array<Slot, k_slots> slots;
    bool taken = false;  // protected by the ring's lock
  };

  // The ring of the device. Never destroyed; keeps the device's platform alive.
  [[nodiscard]] static StagingRing& of(Device& device);
  explicit StagingRing(Device& device);
  StagingRing(const StagingRing&) = delete;
  StagingRing& operator=(const StagingRing&) = delete;
  // Pre: no staging slot is taken.
  ~StagingRing();

  // Whether there is a staging slot, free or not. Creates the first.
  [[nodiscard]] bool is_there() noexcept;
  // Takes a free staging slot; waits while all are in use. Pre: `is_there` was true.
  [[nodiscard]] SlotPair& take() noexcept;
  // The same without waiting; null if all are in use, or no more can be created.
  [[nodiscard]] SlotPair* try_take() noexcept;
  // The same, without creating its memory and queue; null if all are in use.
  [[nodiscard]] SlotPair* reserve() noexcept;
  // Whether a reserved one has memory and a queue now. Creates them if not, in some milliseconds.
  [[nodiscard]] bool make_ready(SlotPair& reserved) noexcept;
  // Pre: nothing is in flight there.
  void give_back(SlotPair& used) noexcept;
  // Whether a thread waits for a staging slot that no other copy has promised. On true the caller,
  // a copy that has several, must return one, so that a small copy need not wait for the end of a
  // large one.
  [[nodiscard]] bool asks_for_one() noexcept;

  // Number of threads, chosen by the times of earlier copies of pageable memory to the device, or
  // back.
  [[nodiscard]] ThreadChoice& threads(bool to_device) noexcept {
    return to_device ? threads_to_ : threads_back_;
  }
  [[nodiscard]] const os::ProcessorSet& processors_near() const noexcept { return near_; }

 private:
  // Pre: the lock is held. Null: none is free.
  [[nodiscard]] SlotPair* claim(bool made) noexcept;
  [[nodiscard]] Result<void> make(SlotPair& empty);

  Ref<Device> device_;
  const os::ProcessorSet near_;
  std::mutex lock_;
  std::condition_variable freed_;
  std::array<SlotPair, k_most_lanes> lanes_;
  std::atomic<std::size_t> waiting_{0};  // changed under the lock
  std::size_t promised_ = 0;
  std::atomic<bool> is_there_{false};
  ThreadChoice threads_to_;
  ThreadChoice threads_back_;
};

}  // namespace isthmus
