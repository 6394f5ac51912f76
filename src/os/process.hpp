#pragma once
// Whether drivers may still be called: not in a forked child, and not once the process is ending.
//
// A child has the parent's memory but none of its threads, drivers or devices: locks may be held
// for ever by threads that are gone. So every entry of the library looks here first, before any
// lock. And once `main` has returned the drivers' own static objects are being destroyed.

#include <atomic>

namespace isthmus::os {

namespace detail {
extern std::atomic<bool> forked;
extern std::atomic<bool> ending;
}  // namespace detail

// Arms both; called each time a driver was opened, so that our end comes before the driver's own.
void watch_process() noexcept;

[[nodiscard]] inline bool is_forked_child() noexcept {
  return detail::forked.load(std::memory_order_relaxed);
}
// Pre-condition of every call that gives something back to a driver.
[[nodiscard]] inline bool drivers_are_gone() noexcept {
  return is_forked_child() || detail::ending.load(std::memory_order_relaxed);
}

}  // namespace isthmus::os
