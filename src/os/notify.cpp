// SPDX-License-Identifier: Apache-2.0
#include "os/notify.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>

namespace isthmus::os {
namespace {

// Writing to a pipe without a reader must not end the process by SIGPIPE.
class PipeSignalKeptOff {
 public:
  PipeSignalKeptOff() noexcept {
    sigset_t pending;
    sigemptyset(&only_);
    sigaddset(&only_, SIGPIPE);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &only_, &before_);
  }
  ~PipeSignalKeptOff() {
    const timespec at_once{0, 0};
    if (!was_pending_) {  // otherwise the pending signal is not ours
      sigtimedwait(&only_, nullptr, &at_once);
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  PipeSignalKeptOff(const PipeSignalKeptOff&) = delete;
  PipeSignalKeptOff& operator=(const PipeSignalKeptOff&) = delete;

 private:
  sigset_t only_;
  sigset_t before_;
  bool was_pending_;
};

}  // namespace

Result<int> duplicate_descriptor(int descriptor) {
  const int own = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (own < 0) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "{} is not a descriptor to write to: {}",
                descriptor, std::strerror(errno));
  }
  return own;
}

void notify_and_close(int descriptor) noexcept {
  // The reader of a full pipe has been notified already, and this thread must not block on it.
  pollfd has_room{descriptor, POLLOUT, 0};
  if (poll(&has_room, 1, 0) == 1 && (has_room.revents & POLLOUT) != 0) {
    const PipeSignalKeptOff quietly;
    const std::uint64_t one = 1;
    while (write(descriptor, &one, sizeof one) < 0 && errno == EINTR) {
    }
  }
  close(descriptor);
}

}  // namespace isthmus::os
