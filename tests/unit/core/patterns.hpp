// SPDX-License-Identifier: Apache-2.0
#pragma once
// Fill patterns for tests.

#include "core/bytes.hpp"

namespace isthmus {

// A pattern of `width` bytes: 1, 2, 3 and so on.
inline FillPattern numbered_pattern(std::size_t width) {
  FillPattern pattern;
  pattern.nbytes = width;
  for (std::size_t index = 0; index < width; ++index) {
    pattern.bytes[index] = static_cast<std::byte>(index + 1);
  }
  return pattern;
}

}  // namespace isthmus
