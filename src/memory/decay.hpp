// SPDX-License-Identifier: Apache-2.0
#pragma once
// Decay: free memory that was not used for some time is returned to the driver.
//
// Blocks do not store when they were freed. Instead a pool tracks the least amount of free memory
// in a window of time: that much was unused throughout the window. So memory is returned between
// one and two windows after its last use, and warm allocations and frees do no work for this.
//
// Both classes are thread-safe.

#include <atomic>

#include "memory/pool_list.hpp"
#include "os/futex.hpp"

namespace isthmus {

class decay_window {
 public:
  using clock = os::clock;
  // With length zero no window ever ends.
  explicit decay_window(clock::duration length) noexcept
      : length_{length}, began_{clock::now().time_since_epoch().count()} {}

  [[nodiscard]] bool is_on() const noexcept { return length_ > clock::duration::zero(); }
  [[nodiscard]] clock::time_point end() const noexcept;
  // Whether the window has ended. Returns true to one caller only, and the next window then begins.
  [[nodiscard]] bool turn(clock::time_point now) noexcept;

 private:
  const clock::duration length_;
  std::atomic<clock::rep> began_;
};

// The pools whose memory also decays while no thread calls them, by an idle thread of the library.
class decaying_pools {
 public:
  [[nodiscard]] static decaying_pools& only();
  // Throws std::bad_alloc.
  void join(pool& member);
  void leave(pool& member) noexcept { members_.leave(member); }
  // Called by a pool when it holds memory again.
  void wake(const decay_window& of) noexcept;

 private:
  [[nodiscard]] static os::deadline do_what_is_due() noexcept;
  // Returns when the next window ends; nothing if the pools hold no memory. Throws std::bad_alloc.
  [[nodiscard]] os::deadline decay_all();
  pool_list members_;
};

}  // namespace isthmus
