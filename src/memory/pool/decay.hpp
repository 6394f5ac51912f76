// SPDX-License-Identifier: Apache-2.0
#pragma once
// Decay: free memory that was not used for some time is returned to the driver.
//
// Blocks do not store when they were freed. Instead a pool tracks the least amount of free memory
// during a window of time: that much was unused throughout the window. So memory is returned
// between one and two windows after its last use, and the fast paths of allocations and frees do no
// work for this.
//
// Both classes are thread-safe.

#include <atomic>

#include "memory/base/pool_list.hpp"
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
  // Returns true if the window has ended, and then begins the next window. Of several concurrent
  // callers, only one gets true.
  [[nodiscard]] bool advance(Clock::time_point now) noexcept;

 private:
  const Clock::duration length_;
  std::atomic<Clock::rep> start_;
};

// The pools whose memory decays even while no thread calls them: an idle library thread performs
// the decay.
class DecayingPools {
 public:
  [[nodiscard]] static DecayingPools& only();
  // Throws std::bad_alloc.
  void join(ListedPool& member);
  void leave(ListedPool& member) noexcept { members_.remove(member); }
  // Sets a function that is called after each decay, on the idle thread.
  using AfterDecay = void (*)() noexcept;
  void set_after_decay(AfterDecay function) noexcept { after_decay_.store(function); }
  // Called by a pool after it has grown.
  void schedule(const DecayWindow& window) noexcept;

 private:
  [[nodiscard]] static os::Deadline decay_due() noexcept;
  // Returns the end of the next window; nothing if the pools hold no memory. Throws std::bad_alloc.
  [[nodiscard]] os::Deadline decay_all();
  PoolList members_;
  std::atomic<AfterDecay> after_decay_{nullptr};
};

}  // namespace isthmus
