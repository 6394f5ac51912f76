// SPDX-License-Identifier: Apache-2.0
#include "os/text_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

namespace isthmus::os {

std::string read_text_file(const std::string& path) {
  std::string text;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  char buffer[4096];
  for (ssize_t count = 1; file >= 0 && count > 0;) {
    count = ::read(file, buffer, sizeof buffer);
    text.append(buffer, static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  }
  if (file >= 0) {
    close(file);
  }
  return text;
}

}  // namespace isthmus::os
