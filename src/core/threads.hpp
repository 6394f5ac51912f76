#pragma once
// Threads of the library's own: they take no signals, which are the program's.

#include <csignal>
#include <thread>
#include <utility>

namespace isthmus {

// While it lives the calling thread blocks all signals, and so does a thread that it starts for
// good.
class signals_blocked {
 public:
  signals_blocked() noexcept;
  ~signals_blocked();
  signals_blocked(const signals_blocked&) = delete;
  signals_blocked& operator=(const signals_blocked&) = delete;

 private:
  sigset_t before_;
};

// Whether the calling thread was started below. Such a thread waits in ways that the end of the
// process may cut short: never in a driver.
[[nodiscard]] bool on_library_thread() noexcept;

namespace detail {
void mark_library_thread() noexcept;
}

// Throws std::system_error where no thread can be had.
template <class Body>
[[nodiscard]] std::thread start_thread(Body body) {
  const signals_blocked meanwhile;
  return std::thread{[body = std::move(body)]() mutable {
    detail::mark_library_thread();
    body();
  }};
}

}  // namespace isthmus
