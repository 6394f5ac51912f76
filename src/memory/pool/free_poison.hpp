// SPDX-License-Identifier: Apache-2.0
#pragma once
// Poisons the free memory of a pool for AddressSanitizer, where the host can access it. Costs
// nothing in other builds.
//
// Memory that was freed after work that may still run must remain accessible to that work. The pool
// poisons it when it next detects that the work has completed: when it coalesces the slab or page
// run, or when a page run is returned. Until then a use after free is not detected, but no valid
// access is reported as an error.
//
// In a build with AddressSanitizer, a poisoned page run is not merged with an adjacent one that is
// not poisoned yet, even if both are usable by the same queue. So a pool whose memory cannot be
// remapped holds more memory than in other builds.

#include "core/poison.hpp"
#include "memory/base/host_memory.hpp"

namespace isthmus {

class FreePoison {
 public:
  // An instance that does nothing, for memory that only a device can access.
  constexpr FreePoison() noexcept = default;
  FreePoison(const Device& device, UsmKind kind) noexcept
      : is_enabled_{k_address_sanitizer && HostMemory::is_host_memory(device, kind)} {}

  [[nodiscard]] bool is_enabled() const noexcept { return k_address_sanitizer && is_enabled_; }
  void apply(const void* begin, std::size_t nbytes) const noexcept {
    if (is_enabled()) {
      poison(begin, nbytes);
    }
  }
  // Called for memory that is allocated by a caller.
  void remove(const void* begin, std::size_t nbytes) const noexcept {
    if (is_enabled()) {
      unpoison(begin, nbytes);
    }
  }
  // Called for addresses that are unmapped.
  void discard(const void* begin, std::size_t nbytes) const noexcept {
    if (is_enabled()) {
      unpoison_permanently(begin, nbytes);
    }
  }

 private:
  static void unpoison_permanently(const void* begin, std::size_t nbytes) noexcept;

  bool is_enabled_ = false;
};

}  // namespace isthmus
