// SPDX-License-Identifier: Apache-2.0
#pragma once
// Decay: free memory that was not used for some time is returned to the driver.
//
// Blocks do not store when they were freed. Instead a pool tracks the least amount of free memory
// in a window of time: that much was unused throughout the window. So memory is returned between
// one and two windows after its last use, and the fast paths of allocations and frees do no work
// for this.
//
// Both classes are thread-safe.

#include <atomic>

#include "memory/pool_list.hpp"
#include "os/futex.hpp"

namespace isthmus {

class DecayWindow {
 public:
  using Clock = os::Clock;
  // With length zero no window ever ends.
  explicit DecayWindow(Clock::duration length) noexcept
      : length_{length}, start_{Clock::now().time_since_epoch().count()} {}

  [[nodiscard]] bool is_enabled() const noexcept { return length_ > Clock::duration::zero(); }
  [[nodiscard]] Clock::time_point end() const noexcept;
  // Whether the window has ended. Returns true to one caller only, and the next window then begins.
  [[nodiscard]] bool advance(Clock::time_point now) noexcept;

 private:
  const Clock::duration length_;
  std::atomic<Clock::rep> start_;
};

// The pools whose memory also decays while no thread calls them, by an idle thread of the library.
class DecayingPools {
 public:
  [[nodiscard]] static DecayingPools& only();
  // Throws std::bad_alloc.
  void join(Pool& member);
  void leave(Pool& member) noexcept { members_.remove(member); }
  // Called by a pool when it holds memory again.
  void schedule(const DecayWindow& window) noexcept;

 private:
  [[nodiscard]] static os::Deadline decay_due() noexcept;
  // Returns when the next window ends; nothing if the pools hold no memory. Throws std::bad_alloc.
  [[nodiscard]] os::Deadline decay_all();
  PoolList members_;
};

}  // namespace isthmus
