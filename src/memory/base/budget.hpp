// SPDX-License-Identifier: Apache-2.0
#pragma once
// A limit on the driver memory that several pools hold together, whether in use or free.
//
// A pool whose growth would exceed the limit first returns its own free memory, then trims the
// other pools. The request fails only if that does not suffice.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "backend/device.hpp"
#include "memory/base/pool_list.hpp"

namespace isthmus {

// Thread-safe. No lock is held while a pool returns memory, so that several pools may trim each
// other at the same time.
class Budget final : public RefCounted {
 public:
  explicit Budget(std::size_t limit_bytes) noexcept : limit_{limit_bytes} {}

  // Reserves bytes before the driver is called, so that concurrent callers together stay within the
  // limit. Returns false if they would exceed it.
  [[nodiscard]] bool claim(std::size_t nbytes) noexcept;
  void unclaim(std::size_t nbytes) noexcept;
  // The error for a pool that cannot grow by `nbytes`. It lists the memory that each pool holds.
  [[nodiscard]] Error refusal(const Device& device, UsmKind kind, std::size_t nbytes);

  [[nodiscard]] std::size_t limit_bytes() const noexcept { return limit_; }
  [[nodiscard]] std::size_t held_bytes() const noexcept {
    return held_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] PoolList& members() noexcept { return members_; }
  // Makes the other pools return at least `nbytes` of free memory to the driver, or all their free
  // memory. Returns whether they returned any.
  [[nodiscard]] bool make_room(const MemoryResource& requester, std::size_t nbytes) noexcept;

  struct State {
    std::size_t limit_bytes = 0;
    std::size_t held_bytes = 0;
    std::size_t free_bytes = 0;  // the part of `held_bytes` that the pools do not use
    std::size_t peak_held_bytes = 0;
    std::size_t pools = 0;
    std::uint64_t refusals = 0;        // calls of `claim` that returned false
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
