// SPDX-License-Identifier: Apache-2.0
#include "os/random.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "core/expects.hpp"
#include "core/hash.hpp"
#include "core/sizes.hpp"

namespace isthmus::os {

void fill_random(std::span<std::byte> out) noexcept {
  ISTHMUS_EXPECTS(out.size() <= 256, out.size());  // getentropy's limit
  if (getentropy(out.data(), out.size()) == 0) {
    return;
  }
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  auto state = hash_of(static_cast<std::uint64_t>(now)) ^ hash_of(address(out.data()));
  for (std::size_t i = 0; i < out.size(); i += sizeof state) {
    state = hash_of(state + i + 1);
    std::memcpy(out.data() + i, &state, std::min(sizeof state, out.size() - i));
  }
}

}  // namespace isthmus::os
