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
class SigpipeBlocker {
 public:
  SigpipeBlocker() noexcept {
    sigset_t pending;
    sigemptyset(&sigpipe_set_);
    sigaddset(&sigpipe_set_, SIGPIPE);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &sigpipe_set_, &saved_mask_);
  }
  ~SigpipeBlocker() {
    const timespec zero_timeout{0, 0};
    if (!was_pending_) {  // otherwise the pending signal belongs to the program
      sigtimedwait(&sigpipe_set_, nullptr, &zero_timeout);
    }
    pthread_sigmask(SIG_SETMASK, &saved_mask_, nullptr);
  }
  SigpipeBlocker(const SigpipeBlocker&) = delete;
  SigpipeBlocker& operator=(const SigpipeBlocker&) = delete;

 private:
  sigset_t sigpipe_set_;
  sigset_t saved_mask_;
  bool was_pending_;
};

}  // namespace

Result<int> duplicate_descriptor(int descriptor) {
  const int duplicate = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (duplicate < 0) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "file descriptor {} cannot be duplicated: {}",
                descriptor, std::strerror(errno));
  }
  return duplicate;
}

void notify_and_close(int descriptor) noexcept {
  // The reader of a full pipe has been notified already, and this thread must not block on it.
  pollfd poll_entry{descriptor, POLLOUT, 0};
  if (poll(&poll_entry, 1, 0) == 1 && (poll_entry.revents & POLLOUT) != 0) {
    const SigpipeBlocker sigpipe_blocked;
    const std::uint64_t one = 1;
    while (write(descriptor, &one, sizeof one) < 0 && errno == EINTR) {
    }
  }
  close(descriptor);
}

}  // namespace isthmus::os
