#pragma once
// Which of a scenario's calls are made to fail in turn. Without a sanitizer, and with
// ISTHMUS_LONG=1, all of them; under AddressSanitizer, where each takes five times as long, the
// first eight and then one of four, another one for each of a scenario's variants, so that together
// they fail every call.

#include <cstdlib>
#include <string_view>

namespace support {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool k_is_slow = true;
#else
inline constexpr bool k_is_slow = false;
#endif

// From one to the next; `more` times as far outside the long tier, where each takes long by itself.
[[nodiscard]] inline int every_nth(int more = 1) noexcept {
  const char* const given = std::getenv("ISTHMUS_LONG");
  const bool is_long = given != nullptr && std::string_view{given} == "1";
  return is_long ? 1 : (k_is_slow ? 4 : 1) * more;
}

// The call after `n` to fail, with every `step`-th chosen.
[[nodiscard]] inline int next_call(int n, int step, int variant = 0) noexcept {
  constexpr int k_all_of_the_first = 8;
  do {
    ++n;
  } while (n > k_all_of_the_first && n % step != variant % step);
  return n;
}

}  // namespace support
