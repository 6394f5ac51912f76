// SPDX-License-Identifier: Apache-2.0
#include "os/pages.hpp"

#include <unistd.h>

namespace isthmus::os {

std::size_t page_size() noexcept {
  static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

}  // namespace isthmus::os
