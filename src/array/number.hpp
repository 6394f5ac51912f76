// SPDX-License-Identifier: Apache-2.0
#pragma once
// Conversions of one number between types, by the rules of C. C leaves the result undefined if a
// float is outside the range of the integer type. The result is then that of x86's instructions, as
// in NumPy: the lowest integer of 32 or 64 bits, or of 16 bits for a long double and a narrow type,
// truncated to the requested width. Thread-safe.

#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace isthmus {

struct Boolean {
  std::uint8_t value;  // 0 or 1 if this library wrote it; otherwise any value
};

// Behaves like the processor's truncating conversions: returns the lowest value if `x` is out of
// range or NaN.
template <std::signed_integral To, std::floating_point From>
[[nodiscard]] To truncated(From x) noexcept {
  constexpr auto k_lowest = static_cast<From>(std::numeric_limits<To>::min());
  const bool fits = static_cast<int>(x >= k_lowest) & static_cast<int>(x < -k_lowest);
  return static_cast<To>(fits ? x : k_lowest);
}

// The same for unsigned types, for which there is no such instruction: values in the upper half of
// the range are shifted into the range of the signed type of the same width.
template <std::unsigned_integral To, std::floating_point From>
[[nodiscard]] To truncated_unsigned(From x) noexcept {
  using SignedTo = std::make_signed_t<To>;
  constexpr auto k_half = -static_cast<From>(std::numeric_limits<SignedTo>::min());
  const bool is_upper_half = x >= k_half;
  const auto lower = static_cast<To>(truncated<SignedTo>(is_upper_half ? x - k_half : x));
  return is_upper_half ? lower ^ (To{1} << (sizeof(To) * 8 - 1)) : lower;
}

// Converts through the same intermediate types as compilers for x86.
template <std::integral To, std::floating_point From>
[[nodiscard]] To integer_of(From x) noexcept {
  constexpr bool is_wide_float = std::is_same_v<From, long double>;
  if constexpr (std::is_same_v<To, std::uint64_t> ||
                (std::is_same_v<To, std::uint32_t> && std::is_same_v<From, float>)) {
    return truncated_unsigned<To>(x);
  } else if constexpr (sizeof(To) == 8 || std::is_same_v<To, std::uint32_t>) {
    return static_cast<To>(truncated<std::int64_t>(x));
  } else if constexpr (is_wide_float && (sizeof(To) == 1 || std::is_same_v<To, std::int16_t>)) {
    return static_cast<To>(truncated<std::int16_t>(x));
  } else {
    return static_cast<To>(truncated<std::int32_t>(x));
  }
}

template <class To, class From>
[[nodiscard]] To converted(From x) noexcept {
  if constexpr (std::is_same_v<To, Boolean>) {
    return {static_cast<std::uint8_t>(x != From{} ? 1 : 0)};
  } else if constexpr (std::integral<To> && std::floating_point<From>) {
    return integer_of<To>(x);
  } else {
    return static_cast<To>(x);
  }
}
template <class To>
[[nodiscard]] To converted(Boolean x) noexcept {
  return static_cast<To>(x.value != 0 ? 1 : 0);
}

}  // namespace isthmus
