// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether drivers may still be called: not in a forked child, and not once the process is ending.
//
// A child has the parent's memory but none of its threads, drivers or devices, and locks may be
// held indefinitely by threads that do not exist in it. So every entry point of the library checks
// this first, before any lock. Once `main` has returned, the drivers' static objects are being
// destroyed.
//
// The driver state changes from active to closing to closed. A `DriverCall` first counts itself,
// then reads the state; the end of the process first sets `closing`, then waits for the count to
// reach 0. Both use sequentially consistent operations, so at least one of them sees the other.
// Thread-safe.

#include <atomic>
#include <cstdint>

namespace isthmus::os {

namespace detail {
// Written only in a child's fork handler, before `fork` returns: relaxed accesses suffice.
extern std::atomic<std::uint32_t> forks;
enum class DriverState : std::uint8_t { active, closing, closed };
extern std::atomic<DriverState> driver_state;
extern thread_local constinit int thread_driver_calls;
}  // namespace detail

// Registers the handler for forks.
void watch_forks() noexcept;
// Registers the handlers for forks and for the end of the process. Called after each opening of a
// driver, so that this exit handler runs before the driver's own.
void watch_process() noexcept;

// A function that is called once as the process ends; several are called in unspecified order.
// Drivers are then still usable, and no thread of the library is in a driver call, unless the call
// did not return within 5 seconds. `run` must return within some seconds.
struct LastDriverCalls {
  void (*run)() noexcept;
  LastDriverCalls* next = nullptr;
};
// `calls` is never freed.
void add_last_driver_calls(LastDriverCalls& calls) noexcept;

// The number of forks between the process that registered the fork handler and this one.
[[nodiscard]] inline std::uint32_t forks() noexcept {
  return detail::forks.load(std::memory_order_relaxed);
}
[[nodiscard]] inline bool is_forked_child() noexcept { return forks() != 0; }
// Checked before every call that releases something to a driver. If true, the call must not be
// made.
[[nodiscard]] inline bool drivers_unavailable() noexcept {
  const auto state = detail::driver_state.load(std::memory_order_relaxed);
  const bool is_nested = state == detail::DriverState::closing && detail::thread_driver_calls != 0;
  return is_forked_child() || (state != detail::DriverState::active && !is_nested);
}

// Encloses driver calls on a thread of the library. False once the process is ending; the thread
// must then not call the driver. The end of the process waits for calls in progress, for 5 seconds
// at most. Calls that began before are completed, including the calls nested in them: operations
// that were submitted but not waited for would run while the driver is torn down.
class DriverCall {
 public:
  DriverCall() noexcept;
  ~DriverCall();
  DriverCall(const DriverCall&) = delete;
  DriverCall& operator=(const DriverCall&) = delete;
  [[nodiscard]] explicit operator bool() const noexcept { return allowed_; }

 private:
  bool allowed_;
};

}  // namespace isthmus::os
