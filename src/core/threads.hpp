#pragma once
// Threads of the library's own: they take none of the signals that are sent to the program. Those
// that a thread's own fault raises reach it as ever.

#include <csignal>
#include <thread>
#include <utility>

namespace isthmus {

// While it lives the calling thread blocks those signals, and so does a thread that it starts, for
// good.
class signals_blocked {
 public:
  signals_blocked() noexcept;
  ~signals_blocked();
  signals_blocked(const signals_blocked&) = delete;
  signals_blocked& operator=(const signals_blocked&) = delete;

  [[nodiscard]] const sigset_t& before() const noexcept { return before_; }

 private:
  sigset_t before_;
};

// While it lives a thread of the library has the signals of the thread that started it: around a
// user's function, whose own threads and processes inherit them.
class signals_of_starter {
 public:
  signals_of_starter() noexcept;
  ~signals_of_starter();
  signals_of_starter(const signals_of_starter&) = delete;
  signals_of_starter& operator=(const signals_of_starter&) = delete;

 private:
  sigset_t before_;
};

// Whether the calling thread was started below. Such a thread waits in ways that the end of the
// process may cut short: never in a driver.
[[nodiscard]] bool on_library_thread() noexcept;

namespace detail {
void mark_library_thread(const sigset_t& signals_of_starter) noexcept;
}

// Throws std::system_error where no thread can be had.
template <class Body>
[[nodiscard]] std::thread start_thread(Body body) {
  const signals_blocked meanwhile;
  return std::thread{[body = std::move(body), signals = meanwhile.before()]() mutable {
    detail::mark_library_thread(signals);
    body();
  }};
}

}  // namespace isthmus
