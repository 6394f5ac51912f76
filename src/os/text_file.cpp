// SPDX-License-Identifier: Apache-2.0
#include "os/text_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

namespace isthmus::os {

std::string whole_text(const std::string& path) {
  std::string text;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  char part[4096];
  for (ssize_t got = 1; file >= 0 && got > 0;) {
    got = ::read(file, part, sizeof part);
    text.append(part, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  }
  if (file >= 0) {
    close(file);
  }
  return text;
}

}  // namespace isthmus::os
