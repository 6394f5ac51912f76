// SPDX-License-Identifier: Apache-2.0
#pragma once
// Conversions of the two 16-bit floats to and from the float types of the processor. They round
// once, to nearest, ties to even; a NaN remains a NaN. Thread-safe.
//
// The conversions have no branches, so that compilers vectorise loops over them.

#include <bit>
#include <cmath>
#include <cstdint>

namespace isthmus {

struct Float16 {
  std::uint16_t bits;
};
struct Bfloat16 {
  std::uint16_t bits;
};

// Rounds to odd: if `x` cannot be represented exactly, returns the neighbour whose last bit is 1.
// Rounding the result again, to at least two bits fewer, gives the same value as rounding `x`
// directly.
template <class To, class Bits, class From>
[[nodiscard]] To rounded_to_odd(From x) noexcept {
  const auto nearest = static_cast<To>(x);
  const auto restored = static_cast<From>(nearest);
  const auto bits = std::bit_cast<Bits>(nearest);
  if (restored == x || std::isnan(x) || bits % 2 != 0) {
    return nearest;
  }
  return std::bit_cast<To>(
      static_cast<Bits>(std::abs(restored) > std::abs(x) ? bits - 1 : bits + 1));
}

[[nodiscard]] inline float to_float(Float16 half) noexcept {
  constexpr std::uint32_t k_exponent = std::uint32_t{0x7c00} << 13;
  constexpr std::uint32_t k_rebias = std::uint32_t{127 - 15} << 23;
  const std::uint32_t digits = (half.bits & std::uint32_t{0x7fff}) << 13;
  const std::uint32_t sign = (half.bits & std::uint32_t{0x8000}) << 16;
  const std::uint32_t exponent = digits & k_exponent;
  const std::uint32_t normal = digits + k_rebias + (exponent == k_exponent ? k_rebias : 0);
  constexpr std::uint32_t k_min_normal = std::uint32_t{113} << 23;
  const auto small = std::bit_cast<std::uint32_t>(std::bit_cast<float>(digits + k_min_normal) -
                                                  std::bit_cast<float>(k_min_normal));
  return std::bit_cast<float>(sign | (exponent == 0 ? small : normal));
}

namespace detail {

// Converts to float16. `Float` has `Digits` mantissa bits and the exponent bias `Bias`; `Bits` is
// an unsigned integer of the same size.
template <class Float, class Bits, int Digits, int Bias>
[[nodiscard]] std::uint16_t half_bits(Float x) noexcept {
  constexpr int k_dropped_bits = Digits - 10;
  constexpr Bits k_one = 1;
  constexpr Bits k_sign = k_one << (sizeof(Bits) * 8 - 1);
  constexpr Bits k_infinity = static_cast<Bits>(2 * Bias + 1) << Digits;
  constexpr Bits k_overflow = static_cast<Bits>(Bias + 16) << Digits;
  constexpr Bits k_min_normal = static_cast<Bits>(Bias - 14) << Digits;
  // The last digit of this number has the value of the smallest float16, so adding the number to
  // `x` rounds `x` to a multiple of that value.
  constexpr Bits k_magic = static_cast<Bits>(Bias + Digits - 24) << Digits;
  const auto all = std::bit_cast<Bits>(x);
  const Bits magnitude = all & ~k_sign;
  const auto sign = static_cast<std::uint16_t>(all >> (sizeof(Bits) * 8 - 16) & 0x8000);

  const Bits payload = magnitude >> k_dropped_bits & 0x3ff;
  const Bits nan = 0x7c00 | payload | (payload == 0 ? 1 : 0);
  const Bits large = magnitude > k_infinity ? nan : Bits{0x7c00};
  const auto sum = std::bit_cast<Float>(magnitude) + std::bit_cast<Float>(k_magic);
  const Bits small = std::bit_cast<Bits>(sum) - k_magic;
  const Bits odd = magnitude >> k_dropped_bits & 1;
  const Bits rounded = magnitude - (static_cast<Bits>(Bias - 15) << Digits) +
                       ((k_one << (k_dropped_bits - 1)) - 1) + odd;
  const Bits normal = rounded >> k_dropped_bits;
  const Bits digits = magnitude >= k_overflow ? large : magnitude < k_min_normal ? small : normal;
  return static_cast<std::uint16_t>(static_cast<std::uint16_t>(digits) | sign);
}

}  // namespace detail

[[nodiscard]] inline Float16 to_float16(float x) noexcept {
  return {detail::half_bits<float, std::uint32_t, 23, 127>(x)};
}
[[nodiscard]] inline Float16 to_float16(double x) noexcept {
  return {detail::half_bits<double, std::uint64_t, 52, 1023>(x)};
}
[[nodiscard]] inline Float16 to_float16(long double x) noexcept {
  return to_float16(rounded_to_odd<double, std::uint64_t>(x));
}

[[nodiscard]] inline float to_float(Bfloat16 half) noexcept {
  return std::bit_cast<float>(std::uint32_t{half.bits} << 16);
}

[[nodiscard]] inline Bfloat16 to_bfloat16(float x) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
  return {static_cast<std::uint16_t>(is_nan ? bits >> 16 | 0x40 : rounded)};
}
template <class Float>
[[nodiscard]] Bfloat16 to_bfloat16(Float x) noexcept {
  return to_bfloat16(rounded_to_odd<float, std::uint32_t>(x));
}

}  // namespace isthmus
