// SPDX-License-Identifier: Apache-2.0
#pragma once
// Selects the calls of a scenario to fail in turn: all of them without a sanitizer or with
// ISTHMUS_LONG=1. Under AddressSanitizer, where each run takes five times as long, the first eight
// and then one in four, a different one for each variant of the scenario, so that the variants
// together fail every call.

#include <cstdlib>
#include <string_view>

namespace support {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool k_is_slow = true;
#else
inline constexpr bool k_is_slow = false;
#endif

// The distance between two selected calls. `more` multiplies it outside the long tier, for
// scenarios whose runs are slow.
[[nodiscard]] inline int every_nth(int more = 1) noexcept {
  const char* const value = std::getenv("ISTHMUS_LONG");
  const bool is_long = value != nullptr && std::string_view{value} == "1";
  return is_long ? 1 : (k_is_slow ? 4 : 1) * more;
}

// Returns the next selected call after `n`, with a distance of `step`.
[[nodiscard]] inline int next_call(int n, int step, int variant = 0) noexcept {
  constexpr int k_all_of_the_first = 8;
  do {
    ++n;
  } while (n > k_all_of_the_first && n % step != variant % step);
  return n;
}

}  // namespace support
