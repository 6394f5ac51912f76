#pragma once
// Which of a scenario's calls are made to fail in turn: all of them, but under AddressSanitizer,
// where each takes five times as long, one of four (ISTHMUS_LONG=1: all there too).

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

}  // namespace support
