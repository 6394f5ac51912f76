// SPDX-License-Identifier: Apache-2.0
#include "os/process_fence.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace isthmus::os {
namespace {

bool membarrier(int command) noexcept { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

}  // namespace

bool register_process_fence() noexcept {
  return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}

bool process_fence() noexcept { return membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED); }

}  // namespace isthmus::os
