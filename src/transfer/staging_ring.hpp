// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pinned host memory and queues of a device, for copies from and to pageable memory. Thread-safe.
//
// The memory is divided into pairs of staging slots. A thread that copies has exclusive use of a
// pair: it fills or empties one slot while the device copies the other. A pair is created on first
// use, which takes some milliseconds, and exists until the process exits. All pairs of a device
// occupy at most 32 MiB.

#include <array>
#include <atomic>

#include "backend/queue.hpp"
#include "core/mutex.hpp"
#include "core/thread_safety.hpp"
#include "os/processors.hpp"
#include "transfer/thread_choice.hpp"

namespace isthmus {

class StagingRing {
 public:
  static constexpr std::size_t k_slot_bytes = std::size_t{2} << 20;
  static constexpr std::size_t k_slots = 2;
  // Maximum number of slot pairs, and so of concurrent copy threads. On an H100 with 16 cores, 12
  // pairs took 16 MiB more memory. A copy of 64 MiB took as long, 1 GiB to the device hardly less,
  // and 1 GiB to the host ran at 48 GB/s against 39 GB/s.
  static constexpr std::size_t k_max_slot_pairs = 8;

  struct Slot {
    std::byte* memory = nullptr;
    Ref<Event> in_flight;

    // Waits until the slot may be reused. The wait must not be refused, since the slot is reused
    // after it, and its queue runs no functions.
    [[nodiscard]] Result<void> end() {
      return in_flight ? std::exchange(in_flight, nullptr)->wait_unchecked(std::nullopt)
                       : Result<void>{};
    }
  };
  struct SlotPair {
    Ref<Queue> queue;  // null: not created yet
    std::array<Slot, k_slots> slots;
    bool taken = false;  // in use or reserved; protected by the ring's lock
  };

  // Returns the ring of `device`. Rings are never destroyed and keep the device's platform alive.
  [[nodiscard]] static StagingRing& of(Device& device);
  explicit StagingRing(Device& device);
  StagingRing(const StagingRing&) = delete;
  StagingRing& operator=(const StagingRing&) = delete;
  // No pair is in use.
  ~StagingRing();

  // Whether the ring has a slot pair, in use or not. Creates the first pair if there is none.
  [[nodiscard]] bool is_available() noexcept;
  // Acquires a free pair; waits while all are in use.
  [[nodiscard]] SlotPair& acquire() noexcept;
  // The same without waiting. Null if all pairs are in use and no more can be created.
  [[nodiscard]] SlotPair* try_acquire() noexcept;
  // The same, without creating the pair's memory and queue. Null if all pairs are in use.
  [[nodiscard]] SlotPair* reserve() noexcept;
  // Creates the memory and queue of a reserved pair if it has none, which takes some milliseconds.
  // Returns whether the pair has them.
  [[nodiscard]] bool make_ready(SlotPair& reserved) noexcept;
  // Nothing is in flight on the pair's slots.
  void release(SlotPair& pair) noexcept;
  // Called by a copy that has several pairs. Returns true if a thread waits for a pair and no other
  // copy has agreed to release one. The caller must then release a pair, so that a small copy does
  // not wait until a large one is complete.
  [[nodiscard]] bool must_release_one() noexcept;

  // Chooses the number of threads from the times of earlier copies of pageable memory in the same
  // direction.
  [[nodiscard]] ThreadChoice& threads(bool to_device) noexcept {
    return to_device ? threads_to_device_ : threads_to_host_;
  }
  [[nodiscard]] const os::ProcessorSet& processors_near() const noexcept {
    return near_processors_;
  }

 private:
  // Marks a free pair as taken and returns it; null if there is none. `is_created` selects pairs
  // with memory and a queue, or without.
  [[nodiscard]] SlotPair* claim(bool is_created) noexcept ISTHMUS_REQUIRES(lock_);
  // Whether a pair with memory and a queue is free.
  [[nodiscard]] bool has_free_pair() const noexcept ISTHMUS_REQUIRES(lock_);
  [[nodiscard]] Result<void> create(SlotPair& empty);

  Ref<Device> device_;
  const os::ProcessorSet near_processors_;
  Mutex lock_;
  ConditionVariable freed_;
  std::array<SlotPair, k_max_slot_pairs> slot_pairs_;
  std::atomic<std::size_t> waiting_{0};  // changed under the lock
  // Pairs that copies have agreed to release.
  std::size_t promised_ ISTHMUS_GUARDED_BY(lock_) = 0;
  std::atomic<bool> is_available_{false};
  ThreadChoice threads_to_device_;
  ThreadChoice threads_to_host_;
};

}  // namespace isthmus
