// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pinned memory of a device, with queues of the device, for copies of pageable host memory.
// Thread-safe.
//
// It is divided into staging slots, in pairs. A thread has a pair for itself while it copies: it
// fills or empties one slot while the device copies the other. A pair is created on first use,
// which takes some milliseconds, and lives until the process ends: 32 MiB a device at most.

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
  // Slot pairs, and so threads that copy at a time. With 12 pairs 64 MiB took as long, 1 GiB to the
  // device hardly less, and 1 GiB to the host ran at 48 GB/s against 39 (H100, 16 cores), for 16
  // MiB more.
  static constexpr std::size_t k_max_slot_pairs = 8;

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
  // Pre: no pair is taken.
  ~StagingRing();

  // Whether there is a pair, free or not. Creates the first.
  [[nodiscard]] bool is_available() noexcept;
  // Acquires a free pair; waits while all are in use. Pre: `is_available` was true.
  [[nodiscard]] SlotPair& acquire() noexcept;
  // The same without waiting; null if all are in use, or no more can be created.
  [[nodiscard]] SlotPair* try_acquire() noexcept;
  // The same, without creating its memory and queue; null if all are in use.
  [[nodiscard]] SlotPair* reserve() noexcept;
  // Whether a reserved one has memory and a queue now. Creates them if not, in some milliseconds.
  [[nodiscard]] bool make_ready(SlotPair& reserved) noexcept;
  // Pre: nothing is in flight there.
  void release(SlotPair& pair) noexcept;
  // Whether a thread waits for a pair that no other copy has promised. On true the caller, a copy
  // that has several, must release one, so that a small copy need not wait for the end of a large
  // one.
  [[nodiscard]] bool must_release_one() noexcept;

  // Number of threads, chosen by the times of earlier copies of pageable memory to the device, or
  // back.
  [[nodiscard]] ThreadChoice& threads(bool to_device) noexcept {
    return to_device ? threads_to_device_ : threads_to_host_;
  }
  [[nodiscard]] const os::ProcessorSet& processors_near() const noexcept {
    return near_processors_;
  }

 private:
  // Pre: the lock is held. Null: none is free.
  [[nodiscard]] SlotPair* claim(bool is_created) noexcept;
  [[nodiscard]] Result<void> create(SlotPair& empty);

  Ref<Device> device_;
  const os::ProcessorSet near_processors_;
  std::mutex lock_;
  std::condition_variable freed_;
  std::array<SlotPair, k_max_slot_pairs> slot_pairs_;
  std::atomic<std::size_t> waiting_{0};  // changed under the lock
  std::size_t promised_ = 0;
  std::atomic<bool> is_available_{false};
  ThreadChoice threads_to_device_;
  ThreadChoice threads_to_host_;
};

}  // namespace isthmus
