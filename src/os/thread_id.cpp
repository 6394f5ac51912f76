// SPDX-License-Identifier: Apache-2.0
#include "os/thread_id.hpp"

#include <sys/syscall.h>
#include <unistd.h>

namespace isthmus::os {

thread_local constinit std::uint64_t detail::cached_thread_id ISTHMUS_TLS_MODEL = 0;

std::uint64_t detail::query_thread_id() noexcept {
  return cached_thread_id = static_cast<std::uint64_t>(syscall(SYS_gettid));
}

}  // namespace isthmus::os
