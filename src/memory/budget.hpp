#pragma once
// Bytes of drivers' memory that several pools may hold together, in use and free alike.
//
// A pool that would go over it gives back its own free memory first, then asks the others for
// theirs, and only then fails.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "backend/device.hpp"
#include "memory/pool_list.hpp"

namespace isthmus {

// Safe for threads. No lock is held while a pool is asked for its memory, so that pools may ask one
// another at the same moment.
class budget final : public ref_counted {
 public:
  explicit budget(std::size_t limit_bytes) noexcept : limit_{limit_bytes} {}

  // Counts bytes before the driver is asked for them, so that those who ask at the same moment stay
  // within the limit together; false if they would not.
  [[nodiscard]] bool claim(std::size_t nbytes) noexcept;
  void give_back(std::size_t nbytes) noexcept;
  // What a pool is told that would need so many more: who holds what.
  [[nodiscard]] error refusal(const device& where, usm_kind kind, std::size_t nbytes);

  [[nodiscard]] std::size_t limit_bytes() const noexcept { return limit_; }
  [[nodiscard]] std::size_t held_bytes() const noexcept {
    return held_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] pool_list& members() noexcept { return members_; }
  // Has the other pools give back free memory, at least so much if they have it; whether there was
  // any.
  [[nodiscard]] bool make_room(const pool& asker, std::size_t nbytes) noexcept;

  struct state {
    std::size_t limit_bytes = 0;
    std::size_t held_bytes = 0;
    std::size_t free_bytes = 0;  // of these, for anybody in their pool
    std::size_t peak_held_bytes = 0;
    std::size_t pools = 0;
    std::uint64_t refusals = 0;         // times that a pool's growth did not fit at once
    std::uint64_t reclaimed_bytes = 0;  // that pools gave back for others
  };
  [[nodiscard]] state now();
  [[nodiscard]] std::uint64_t refusals() const noexcept {
    return refusals_.load(std::memory_order_relaxed);
  }

 private:
  ~budget() override = default;

  const std::size_t limit_;
  std::atomic<std::size_t> held_{0};
  std::atomic<std::size_t> peak_{0};
  std::atomic<std::uint64_t> refusals_{0};
  std::atomic<std::uint64_t> reclaimed_{0};
  pool_list members_;
};

}  // namespace isthmus
