#include "os/process.hpp"

#include <pthread.h>

namespace isthmus::os {

namespace detail {
std::atomic<bool> forked{false};
}

void watch_for_fork() noexcept {
  [[maybe_unused]] static const int registered = pthread_atfork(
      nullptr, nullptr, [] { detail::forked.store(true, std::memory_order_relaxed); });
}

}  // namespace isthmus::os
