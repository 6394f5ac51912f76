#pragma once
// Whether this process is a forked child of the one that opened the drivers.
//
// A child has the parent's memory but none of its threads, drivers or devices: locks may be held for
// ever by threads that are gone. So every entry of the library looks here first, before any lock.

#include <atomic>

namespace isthmus::os {

namespace detail {
extern std::atomic<bool> forked;
}

// Arms the check; called once before the first driver is opened.
void watch_for_fork() noexcept;

[[nodiscard]] inline bool is_forked_child() noexcept {
  return detail::forked.load(std::memory_order_relaxed);
}

}  // namespace isthmus::os
