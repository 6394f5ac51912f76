// SPDX-License-Identifier: Apache-2.0
// 16-bit floating-point numbers for use as array elements: float16 is IEEE 754 binary16, bfloat16
// the upper half of a binary32.
//
//   const isthmus::float16 half = 0.1f;      // rounded to nearest, ties to even
//   const float again = half;                // exact
//
// These types only store numbers: arithmetic converts them to float. Numbers with more digits than
// float has are rounded once, not twice.
//
// Cost: a few instructions per conversion. Thread safety: as plain values.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace isthmus {
inline namespace v1 {
namespace detail {

// `value` rounded to odd: as a float whose last bit is set if digits were dropped. Rounding the
// result to at least two bits fewer gives the same number as rounding `value` directly.
template <std::floating_point Wide>
[[nodiscard]] constexpr float round_to_odd(Wide value) noexcept {
  using limits = std::numeric_limits<float>;
  if (value > Wide{limits::max()}) return limits::infinity();
  if (value < Wide{limits::lowest()}) return -limits::infinity();
  const auto nearest = static_cast<float>(value);
  const auto restored = static_cast<Wide>(nearest);
  if (restored == value || value != value) return nearest;
  const auto bits = std::bit_cast<std::uint32_t>(nearest);
  if ((bits & 1U) != 0) return nearest;
  const bool is_too_far = value > 0 ? restored > value : restored < value;
  return std::bit_cast<float>(is_too_far ? bits - 1U : bits + 1U);
}

// The same for an integer as a double, which has 11 bits fewer.
[[nodiscard]] constexpr double integer_to_odd(std::uint64_t value) noexcept {
  if (value >> 53U == 0) return static_cast<double>(value);
  const std::uint64_t sticky_bit = (value & 0x7ffU) != 0 ? 1 : 0;
  return static_cast<double>(value >> 11U | sticky_bit) * 0x1p11;
}

template <class Number>
[[nodiscard]] constexpr float as_float(Number value) noexcept {
  if constexpr (std::is_same_v<Number, float> || sizeof(Number) < sizeof(float)) {
    return static_cast<float>(value);
  } else if constexpr (std::is_floating_point_v<Number>) {
    return round_to_odd(value);
  } else {
    const bool is_negative = std::is_signed_v<Number> && value <= Number{0} && value != Number{0};
    const auto bits = static_cast<std::uint64_t>(value);
    return round_to_odd(is_negative ? -integer_to_odd(0 - bits) : integer_to_odd(bits));
  }
}

// `bits` without its last `dropped_bits` bits, rounded to nearest, ties to even.
[[nodiscard]] constexpr std::uint32_t rounded(std::uint32_t bits,
                                              std::uint32_t dropped_bits) noexcept {
  const std::uint32_t half = 1U << (dropped_bits - 1U);
  const std::uint32_t remainder = bits & ((1U << dropped_bits) - 1U);
  const std::uint32_t quotient = bits >> dropped_bits;
  return quotient + (remainder > half || (remainder == half && (quotient & 1U) != 0) ? 1U : 0U);
}

inline constexpr std::uint32_t k_float_infinity = 0x7f800000;

[[nodiscard]] constexpr std::uint16_t float16_bits(float value) noexcept {
  constexpr std::uint32_t k_min_infinite = 0x477ff000;  // 65520: halfway above the largest number
  constexpr std::uint32_t k_min_normal = 0x38800000;    // 2^-14
  constexpr std::uint32_t k_rebias = 0x38000000;        // (127 - 15) << 23
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = bits >> 16U & 0x8000U;
  const auto magnitude = bits & 0x7fffffffU;
  std::uint32_t result = 0x7c00;
  if (magnitude > k_float_infinity) {
    result = 0x7e00U | (magnitude >> 13U & 0x3ffU);
  } else if (magnitude < k_min_normal) {
    const auto exponent = magnitude >> 23U;  // in units of 2^-24: mantissa * 2^(exponent - 126)
    const auto mantissa = (magnitude & 0x7fffffU) | 0x800000U;
    result = exponent < 102 ? 0U : rounded(mantissa, 126U - exponent);
  } else if (magnitude < k_min_infinite) {
    result = rounded(magnitude - k_rebias, 13);
  }
  return static_cast<std::uint16_t>(sign | result);
}

[[nodiscard]] constexpr float float16_to_float(std::uint16_t half) noexcept {
  const std::uint32_t sign = (half & 0x8000U) << 16U;
  const std::uint32_t exponent = half >> 10U & 0x1fU;
  const std::uint32_t mantissa = half & 0x3ffU;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  const std::uint32_t wide = exponent == 0x1f ? 0xffU : exponent + 112U;
  return std::bit_cast<float>(sign | wide << 23U | mantissa << 13U);
}

[[nodiscard]] constexpr std::uint16_t bfloat16_bits(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool is_nan = (bits & 0x7fffffffU) > k_float_infinity;
  return static_cast<std::uint16_t>(is_nan ? bits >> 16U | 0x40U : rounded(bits, 16));
}

[[nodiscard]] constexpr float bfloat16_to_float(std::uint16_t half) noexcept {
  return std::bit_cast<float>(std::uint32_t{half} << 16U);
}

// The common part of both types, given their conversions from and to float.
template <class Half, std::uint16_t (*BitsOf)(float), float (*FloatOf)(std::uint16_t)>
class half {
 public:
  half() noexcept = default;
  template <class Number>
    requires std::is_arithmetic_v<Number>
  constexpr half(Number value) noexcept : bits_(BitsOf(as_float(value))) {}
  constexpr operator float() const noexcept { return FloatOf(bits_); }

  // The number with this representation.
  [[nodiscard]] static constexpr Half from_bits(std::uint16_t bits) noexcept {
    Half result(0.0F);
    static_cast<half&>(result).bits_ = bits;
    return result;
  }
  [[nodiscard]] constexpr std::uint16_t bits() const noexcept { return bits_; }

 private:
  std::uint16_t bits_;
};

}  // namespace detail

// IEEE 754 binary16.
class float16 : public detail::half<float16, detail::float16_bits, detail::float16_to_float> {
 public:
  using half::half;
};
// The upper half of a binary32.
class bfloat16 : public detail::half<bfloat16, detail::bfloat16_bits, detail::bfloat16_to_float> {
 public:
  using half::half;
};

static_assert(sizeof(float16) == 2 && std::is_trivially_copyable_v<float16>);
static_assert(sizeof(bfloat16) == 2 && std::is_trivially_copyable_v<bfloat16>);
static_assert(float16(1.0F).bits() == 0x3c00 && float16(65520.0F).bits() == 0x7c00);
static_assert(float16(0x1p-25F).bits() == 0 && float16(0x1.8p-25F).bits() == 1);
static_assert(bfloat16(1.0F).bits() == 0x3f80);
// Values that exceed a midpoint by less than the resolution of float or of double.
static_assert(float16(1.0L + 0x1p-11L + 0x1p-60L).bits() == 0x3c01 ||
              std::numeric_limits<long double>::digits < 61);
static_assert(bfloat16((std::int64_t{1} << 62) + (std::int64_t{1} << 54) + 1).bits() == 0x5e81);
static_assert(bfloat16(-(std::int64_t{1} << 62) - (std::int64_t{1} << 54) - 1).bits() == 0xde81);
static_assert(bfloat16((std::int64_t{1} << 62) + (std::int64_t{1} << 54)).bits() == 0x5e80);
static_assert(float16(1e300).bits() == 0x7c00 && bfloat16(-1e39).bits() == 0xff80);

}  // namespace v1
}  // namespace isthmus
