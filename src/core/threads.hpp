// SPDX-License-Identifier: Apache-2.0
#pragma once
// The library's own threads. They block the signals that are sent to the process. Signals raised by
// a fault of the thread itself are delivered as usual.

#include <csignal>
#include <thread>
#include <utility>

namespace isthmus {

// Blocks those signals in the calling thread while the object exists. A thread that the calling
// thread starts meanwhile blocks them permanently.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept;
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

  [[nodiscard]] const sigset_t& saved_mask() const noexcept { return saved_mask_; }

 private:
  sigset_t saved_mask_;
};

// While the object exists, the calling library thread has the signal mask of the thread that
// started it. Used around calls of a user's function, since threads and processes that the function
// starts inherit the mask.
class SignalsOfStarter {
 public:
  SignalsOfStarter() noexcept;
  ~SignalsOfStarter();
  SignalsOfStarter(const SignalsOfStarter&) = delete;
  SignalsOfStarter& operator=(const SignalsOfStarter&) = delete;

 private:
  sigset_t saved_mask_;
};

// Whether the calling thread was started by `start_thread`. Such a thread waits only in ways that
// the end of the process can interrupt, never in a driver.
[[nodiscard]] bool on_library_thread() noexcept;

namespace detail {
void mark_library_thread(const sigset_t& starter_mask) noexcept;
}

// Throws std::system_error if no thread can be started.
template <class Body>
[[nodiscard]] std::thread start_thread(Body body) {
  const SignalsBlocked signals_blocked;
  return std::thread{[body = std::move(body), signals = signals_blocked.saved_mask()]() mutable {
    detail::mark_library_thread(signals);
    body();
  }};
}

}  // namespace isthmus
