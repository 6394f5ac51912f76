#include "os/notify.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace isthmus::os {

result<int> duplicate_descriptor(int descriptor) {
  const int own = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (own < 0) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "{} is not a descriptor to write to: {}",
                descriptor, std::strerror(errno));
  }
  return own;
}

void notify_and_close(int descriptor) noexcept {
  const std::uint64_t one = 1;
  while (write(descriptor, &one, sizeof one) < 0 && errno == EINTR) {
  }
  close(descriptor);
}

}  // namespace isthmus::os
