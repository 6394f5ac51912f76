#include "os/process.hpp"

#include <pthread.h>

#include <cstdlib>

namespace isthmus::os {

namespace detail {
std::atomic<bool> forked{false};
std::atomic<bool> ending{false};
}  // namespace detail

void watch_process() noexcept {
  [[maybe_unused]] static const int registered = pthread_atfork(
      nullptr, nullptr, [] { detail::forked.store(true, std::memory_order_relaxed); });
  // Last registered, first run: before what the driver registered while it was opened.
  std::atexit([] { detail::ending.store(true, std::memory_order_relaxed); });
}

}  // namespace isthmus::os
