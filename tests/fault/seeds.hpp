// SPDX-License-Identifier: Apache-2.0
#pragma once
// Seeds for random models: a few, many with ISTHMUS_LONG=1, or the one in ISTHMUS_SEED.

#include <cstdlib>
#include <string_view>
#include <vector>

#include "support/sizes.hpp"

namespace support {

inline std::vector<unsigned> seeds(unsigned few) {
  if (const char* one = std::getenv("ISTHMUS_SEED"); one != nullptr) {
    return {static_cast<unsigned>(std::strtoul(one, nullptr, 10))};
  }
  const char* const value = std::getenv("ISTHMUS_LONG");
  const bool is_long = value != nullptr && std::string_view{value} == "1";
  std::vector<unsigned> all(is_long ? 20 * few : few);
  for (unsigned i = 0; i < all.size(); ++i) all[i] = i + 1;
  return all;
}

}  // namespace support
