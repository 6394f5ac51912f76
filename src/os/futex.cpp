// SPDX-License-Identifier: Apache-2.0
#include "os/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <ctime>

namespace isthmus::os {

Deadline deadline_after(std::int64_t timeout_ns) noexcept {
  if (timeout_ns < 0) {
    return std::nullopt;
  }
  const auto now = Clock::now();
  const auto max_timeout = Clock::time_point::max() - now;
  const std::chrono::nanoseconds timeout{timeout_ns};
  return timeout >= max_timeout ? Deadline{} : Deadline{now + timeout};
}

bool futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                const Deadline& deadline) noexcept {
  timespec relative{};
  if (deadline) {
    const auto remaining =
        std::chrono::duration_cast<std::chrono::nanoseconds>(*deadline - Clock::now()).count();
    if (remaining <= 0) {
      return false;
    }
    relative.tv_sec = static_cast<time_t>(remaining / 1'000'000'000);
    relative.tv_nsec = static_cast<long>(remaining % 1'000'000'000);
  }
  return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, deadline ? &relative : nullptr,
                 nullptr, 0) == 0 ||
         errno != ETIMEDOUT;
}

void futex_wake_all(const std::atomic<std::uint32_t>& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace isthmus::os
