#pragma once
// Free memory that nobody needed for some time goes back to the driver.
//
// No block has a note of when it was freed. What was free at every moment of a window of time was
// needed by nobody in it, and the least amount is that. So memory goes back between one and two
// windows after it was needed last, and a warm allocation or free has nothing to do with it.

#include <atomic>

#include "memory/pool_list.hpp"
#include "os/futex.hpp"

namespace isthmus {

class decay_window {
 public:
  using clock = os::clock;
  // Zero: no window ever ends.
  explicit decay_window(clock::duration length) noexcept
      : length_{length}, began_{clock::now().time_since_epoch().count()} {}

  [[nodiscard]] bool is_on() const noexcept { return length_ > clock::duration::zero(); }
  [[nodiscard]] clock::time_point end() const noexcept;
  // Whether it has ended; true for one caller, and then the next one begins.
  [[nodiscard]] bool turn(clock::time_point now) noexcept;

 private:
  const clock::duration length_;
  std::atomic<clock::rep> began_;
};

// Pools whose memory decays while nobody calls them, by a thread of the library that is idle.
class decaying_pools {
 public:
  [[nodiscard]] static decaying_pools& only();
  // Throws std::bad_alloc.
  void join(pool& member);
  void leave(pool& member) noexcept { members_.leave(member); }
  // From a pool that holds memory again.
  void wake(const decay_window& of) noexcept;

 private:
  [[nodiscard]] static os::deadline do_what_is_due() noexcept;
  // When the next window ends; none: they hold nothing. Throws std::bad_alloc.
  [[nodiscard]] os::deadline decay_all();
  pool_list members_;
};

}  // namespace isthmus
