// SPDX-License-Identifier: Apache-2.0
#pragma once
// A limit on the driver memory that several pools hold together, whether in use or free.
//
// A pool that would exceed it first returns its own free memory, then makes the other pools return
// their free memory, and fails only if that is not enough.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "backend/device.hpp"
#include "memory/pool_list.hpp"

namespace isthmus {

// Thread-safe. No lock is held while a pool returns memory, so several pools may make each other do
// so at the same time.
class Budget final : public RefCounted {
 public:
  explicit Budget(std::size_t limit_bytes) noexcept : limit_{limit_bytes} {}

  // Reserves bytes before the driver is called, so that concurrent callers together stay within the
  // limit. Returns false if they would exceed it.
  [[nodiscard]] bool claim(std::size_t nbytes) noexcept;
  void unclaim(std::size_t nbytes) noexcept;
  // The error for a pool that would need `nbytes` more: it lists what each pool holds.
  [[nodiscard]] Error refusal(const Device& device, UsmKind kind, std::size_t nbytes);

  [[nodiscard]] std::size_t limit_bytes() const noexcept { return limit_; }
  [[nodiscard]] std::size_t held_bytes() const noexcept {
    return held_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] PoolList& members() noexcept { return members_; }
  // Makes the other pools return free memory to the driver, at least `nbytes` if they have that
  // much. Returns whether they returned any.
  [[nodiscard]] bool make_room(const Pool& requester, std::size_t nbytes) noexcept;

  struct State {
    std::size_t limit_bytes = 0;
    std::size_t held_bytes = 0;
    std::size_t free_bytes = 0;  // of these, not in use in their pools
    std::size_t peak_held_bytes = 0;
    std::size_t pools = 0;
    std::uint64_t refusals = 0;        // how often a pool's growth did not fit at once
    std::uint64_t released_bytes = 0;  // returned by pools on behalf of other pools
  };
  [[nodiscard]] State state();
  [[nodiscard]] std::uint64_t refusals() const noexcept {
    return refusals_.load(std::memory_order_relaxed);
  }

 private:
  ~Budget() override = default;

  const std::size_t limit_;
  std::atomic<std::size_t> held_{0};
  std::atomic<std::size_t> peak_{0};
  std::atomic<std::uint64_t> refusals_{0};
  std::atomic<std::uint64_t> released_{0};
  PoolList members_;
};

}  // namespace isthmus
