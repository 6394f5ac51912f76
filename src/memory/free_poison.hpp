#pragma once
// AddressSanitizer's view of a pool's memory: what no caller has is poisoned, where the host could
// touch it at all. Costs nothing in other builds.
//
// What is freed behind work that may still run is open to that work. It is poisoned where the pool
// next learns that the work has ended (a slab that settles, a run given back or settled), and till
// then stays open: a late use goes unnoticed, but no right one is told.
// In such a build a run that is poisoned is not joined with a neighbour that is not yet, though
// both be good for the same queue: a pool whose memory cannot move holds more than in others.

#include "core/poison.hpp"
#include "memory/host_memory.hpp"

namespace isthmus {

class free_poison {
 public:
  // None: of memory that only a device reaches.
  constexpr free_poison() noexcept = default;
  free_poison(const device& where, usm_kind kind) noexcept
      : is_on_{k_address_sanitizer && host_memory::holds(where, kind)} {}

  [[nodiscard]] bool is_on() const noexcept { return k_address_sanitizer && is_on_; }
  void put(const void* begin, std::size_t nbytes) const noexcept {
    if (is_on()) {
      poison(begin, nbytes);
    }
  }
  // From what goes to a caller.
  void lift(const void* begin, std::size_t nbytes) const noexcept {
    if (is_on()) {
      unpoison(begin, nbytes);
    }
  }
  // From addresses that the memory leaves.
  void forget(const void* begin, std::size_t nbytes) const noexcept {
    if (is_on()) {
      unpoison_for_good(begin, nbytes);
    }
  }

 private:
  static void unpoison_for_good(const void* begin, std::size_t nbytes) noexcept;

  bool is_on_ = false;
};

}  // namespace isthmus
