#pragma once
// Whether drivers may still be called: not in a forked child, and not once the process is ending.
//
// A child has the parent's memory but none of its threads, drivers or devices: locks may be held
// for ever by threads that are gone. So every entry of the library looks here first, before any
// lock. And once `main` has returned the drivers' own static objects are being destroyed.

#include <atomic>
#include <cstdint>

namespace isthmus::os {

namespace detail {
extern std::atomic<std::uint32_t> forks;
enum class drivers : std::uint8_t { here, going, gone };
extern std::atomic<drivers> state;
extern thread_local constinit int calls_of_this_thread;
}  // namespace detail

// Arms the first.
void watch_forks() noexcept;
// Arms both; called each time a driver was opened, so that our end comes before the driver's own.
void watch_process() noexcept;

// How many forks lie between the process that armed the first and this one.
[[nodiscard]] inline std::uint32_t forks() noexcept {
  return detail::forks.load(std::memory_order_relaxed);
}
[[nodiscard]] inline bool is_forked_child() noexcept { return forks() != 0; }
// Pre-condition of every call that gives something back to a driver.
[[nodiscard]] inline bool drivers_are_gone() noexcept {
  const auto seen = detail::state.load(std::memory_order_relaxed);
  const bool may_end = seen == detail::drivers::going && detail::calls_of_this_thread != 0;
  return is_forked_child() || (seen != detail::drivers::here && !may_end);
}

// Stands around a driver's calls on a thread of the library's own. False once the process is
// ending, and then no call may follow; the end waits for those that are under way, some seconds at
// most. What began before that is carried through, with all calls that lie within: what was
// submitted and nobody waits for would run while the driver is taken down.
class driver_call {
 public:
  driver_call() noexcept;
  ~driver_call();
  driver_call(const driver_call&) = delete;
  driver_call& operator=(const driver_call&) = delete;
  [[nodiscard]] explicit operator bool() const noexcept { return allowed_; }

 private:
  bool allowed_;
};

}  // namespace isthmus::os
