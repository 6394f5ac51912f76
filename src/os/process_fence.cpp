#include "os/process_fence.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace isthmus::os {
namespace {

bool membarrier(int command) noexcept { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

}  // namespace

bool arm_process_fence() noexcept { return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED); }

void process_fence() noexcept {
  static_cast<void>(membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED));  // cannot fail once armed
}

}  // namespace isthmus::os
