// SPDX-License-Identifier: Apache-2.0
#include "os/sole_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "os/process.hpp"

namespace isthmus::os {
namespace {

bool lock_and_empty(int descriptor) noexcept {
  struct stat about {};
  if (fstat(descriptor, &about) != 0) {
    return false;
  }
  if (!S_ISREG(about.st_mode)) {
    return true;
  }
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return false;
  }
  return ftruncate(descriptor, 0) == 0;
}

}  // namespace

std::FILE* open_sole(const char* path) noexcept {
  const int descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    return nullptr;
  }
  std::FILE* made = lock_and_empty(descriptor) ? fdopen(descriptor, "w") : nullptr;
  if (made == nullptr) {
    const int why = errno;
    close(descriptor);
    errno = why;
  }
  return made;
}

void close_sole(std::FILE* open) noexcept {
  if (!is_forked_child()) {  // the child shares the parent's lock
    flock(fileno(open), LOCK_UN);
  }
  std::fclose(open);
}

}  // namespace isthmus::os
