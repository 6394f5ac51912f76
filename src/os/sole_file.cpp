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

bool lock_and_truncate(int descriptor) noexcept {
  struct stat info {};
  if (fstat(descriptor, &info) != 0) {
    return false;
  }
  if (!S_ISREG(info.st_mode)) {
    return true;
  }
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return false;
  }
  return ftruncate(descriptor, 0) == 0;
}

}  // namespace

std::FILE* open_exclusive(const char* path) noexcept {
  const int descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    return nullptr;
  }
  std::FILE* file = lock_and_truncate(descriptor) ? fdopen(descriptor, "w") : nullptr;
  if (file == nullptr) {
    const int saved_error = errno;
    close(descriptor);
    errno = saved_error;
  }
  return file;
}

void close_exclusive(std::FILE* file) noexcept {
  if (!is_forked_child()) {  // the child shares the parent's lock
    flock(fileno(file), LOCK_UN);
  }
  std::fclose(file);
}

}  // namespace isthmus::os
