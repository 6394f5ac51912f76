#pragma once
// Pinned memory of a device that small copies of plain host memory to it are gathered in: 4 MiB,
// made when it is first needed and kept till the process ends.
//
// A slot is used again once the copy out of it has ended. That is known without asking the driver
// where somebody has waited for the last copy, and then the slot that was just used, which the
// caches still have, is the next one too; else the oldest copy is asked about once there is no
// room. Safe for threads; nobody waits for a slot.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "backend/device.hpp"
#include "backend/event.hpp"
#include "core/spin_lock.hpp"

namespace isthmus {

class pinned_slots {
 public:
  static constexpr std::size_t k_unit_bytes = std::size_t{64} << 10;
  static constexpr std::size_t k_units = 64;
  // Of one slot: a copy does not take more than a quarter.
  static constexpr std::size_t k_most_bytes = k_unit_bytes * k_units / 4;

  struct slot {
    std::byte* memory = nullptr;  // null: none
    std::uint64_t units = 0;      // a bit each, one behind the other
  };

  // Pre: the device outlives it.
  explicit pinned_slots(device& where) noexcept : where_{where} {}
  pinned_slots(const pinned_slots&) = delete;
  pinned_slots& operator=(const pinned_slots&) = delete;
  // Pre: nothing is in flight there.
  ~pinned_slots();

  // Of so many bytes, up to `k_most_bytes`. None where all are in flight, no memory can be pinned,
  // or another thread is about to, which takes a millisecond.
  [[nodiscard]] slot take(std::size_t nbytes) noexcept;
  // What was submitted on it ends with `ended`.
  void keep_till(const slot& used, ref<event> ended) noexcept;
  // Pre: nothing is in flight there.
  void give_back(const slot& unused) noexcept;

 private:
  struct flight {
    std::uint64_t units = 0;
    ref<event> ended;
  };

  [[nodiscard]] bool is_there() noexcept;
  [[nodiscard]] std::byte* make() const noexcept;
  [[nodiscard]] std::uint64_t claim(std::size_t units) noexcept;
  [[nodiscard]] ref<event> drop_newest_if_settled() noexcept;
  [[nodiscard]] bool free_oldest() noexcept;
  // Pre: under the lock.
  [[nodiscard]] flight& flight_at(std::size_t index) noexcept {
    return flights_[(first_ + index) % k_units];
  }

  device& where_;
  std::atomic<std::byte*> memory_{nullptr};
  std::atomic<bool> is_being_made_{false};
  spin_lock lock_;
  std::uint64_t free_ = ~std::uint64_t{0};
  // In the order in which they were put; as each has a unit or more, there is always room.
  std::array<flight, k_units> flights_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

}  // namespace isthmus
