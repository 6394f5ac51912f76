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

#include <isthmus/detail/cxx20.hpp>

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace isthmus {
inline namespace v1 {
namespace detail {

// This is the project's only implementation: the library converts arrays with it, and the Python
// package reads elements with it. The alternatives do not build or round everywhere it has to:
//   - `_Float16` is missing in clang 14 for x86-64. g++ 12 calls a function of libgcc for each
//     conversion unless F16C is enabled, so that loops are not vectorised.
//   - <stdfloat> begins with g++ 13.
//   - The FP16 package is not constexpr, would be a dependency of every user, and replaces the
//     payload of a NaN, which NumPy keeps.
// The conversions have no branches, so that compilers vectorise loops over them. They assume the
// rounding mode to nearest.

// std::abs is not constexpr in C++20.
template <std::floating_point Number>
[[nodiscard]] constexpr Number magnitude_of(Number value) noexcept {
  if constexpr (std::is_same_v<Number, long double>) {
    return __builtin_fabsl(value);
  } else {
    return static_cast<Number>(__builtin_fabs(value));
  }
}

// Rounds to odd: returns the neighbour whose last bit is 1 if `value` cannot be represented
// exactly. Rounding the result again, to at least two bits fewer, gives the same number as rounding
// `value` directly.
template <class To, class Bits, std::floating_point Wide>
[[nodiscard]] constexpr To round_to_odd(Wide value) noexcept {
  using limits = std::numeric_limits<To>;
  if (std::is_constant_evaluated()) {  // which does not allow a conversion out of range
    if (value > Wide{limits::max()}) return limits::infinity();
    if (value < Wide{limits::lowest()}) return -limits::infinity();
  }
  const auto nearest = static_cast<To>(value);
  const auto restored = static_cast<Wide>(nearest);
  const auto bits = std::bit_cast<Bits>(nearest);
  if (restored == value || value != value || bits % 2 != 0) return nearest;
  return std::bit_cast<To>(magnitude_of(restored) > magnitude_of(value) ? bits - 1 : bits + 1);
}

// The same for the magnitude of an integer as a double, which has 11 bits fewer.
[[nodiscard]] constexpr double integer_to_odd(std::uint64_t magnitude) noexcept {
  constexpr std::uint64_t k_dropped = 0x7ff;
  const std::uint64_t sticky_bit = (magnitude & k_dropped) != 0 ? k_dropped + 1 : 0;
  const bool is_long = magnitude >> 53U != 0;
  return static_cast<double>(is_long ? (magnitude & ~k_dropped) | sticky_bit : magnitude);
}
template <std::integral Integer>
[[nodiscard]] constexpr double integer_to_odd(Integer value) noexcept {
  const bool is_negative = std::is_signed_v<Integer> && value <= Integer{0} && value != Integer{0};
  const auto bits = static_cast<std::uint64_t>(value);
  return is_negative ? -integer_to_odd(std::uint64_t{0} - bits) : integer_to_odd(bits);
}

// A number as a float, double or long double that rounds to the same 16 bits.
template <class Number>
[[nodiscard]] constexpr auto as_floating(Number value) noexcept {
  if constexpr (std::is_floating_point_v<Number>) {
    return value;
  } else if constexpr (sizeof(Number) < sizeof(float)) {
    return static_cast<float>(value);
  } else {
    return integer_to_odd(value);
  }
}

// `Float` has `Digits` mantissa bits and the exponent bias `Bias`; `Bits` is an unsigned integer of
// the same size.
template <class Float, class Bits, int Digits, int Bias>
[[nodiscard]] constexpr std::uint16_t narrow_to_float16(Float value) noexcept {
  constexpr int k_dropped_bits = Digits - 10;
  constexpr Bits k_one = 1;
  constexpr Bits k_sign = k_one << (sizeof(Bits) * 8 - 1);
  constexpr Bits k_infinity = static_cast<Bits>(2 * Bias + 1) << Digits;
  constexpr Bits k_overflow = static_cast<Bits>(Bias + 16) << Digits;
  constexpr Bits k_min_normal = static_cast<Bits>(Bias - 14) << Digits;
  // The last digit of this number has the value of the smallest float16, so adding the number to
  // `value` rounds `value` to a multiple of that.
  constexpr Bits k_magic = static_cast<Bits>(Bias + Digits - 24) << Digits;
  const auto all = std::bit_cast<Bits>(value);
  const Bits magnitude = all & ~k_sign;
  const auto sign = static_cast<std::uint16_t>(all >> (sizeof(Bits) * 8 - 16) & 0x8000);

  // A NaN keeps the first bits of its payload, as in NumPy.
  const Bits payload = magnitude >> k_dropped_bits & 0x3ff;
  const Bits nan = 0x7c00 | payload | (payload == 0 ? 1 : 0);
  const Bits large = magnitude > k_infinity ? nan : Bits{0x7c00};
  auto sum = std::bit_cast<Float>(k_magic);
  // Constant evaluation does not allow the sum of a NaN.
  if (!std::is_constant_evaluated() || magnitude < k_min_normal) {
    sum += std::bit_cast<Float>(magnitude);
  }
  const Bits small = std::bit_cast<Bits>(sum) - k_magic;
  const Bits odd = magnitude >> k_dropped_bits & 1;
  const Bits rounded = magnitude - (static_cast<Bits>(Bias - 15) << Digits) +
                       ((k_one << (k_dropped_bits - 1)) - 1) + odd;
  const Bits normal = rounded >> k_dropped_bits;
  const Bits digits = magnitude >= k_overflow ? large : magnitude < k_min_normal ? small : normal;
  return static_cast<std::uint16_t>(static_cast<std::uint16_t>(digits) | sign);
}

// IEEE 754 binary16: the representation of a number, and the number of a representation.
struct float16_format {
  [[nodiscard]] static constexpr std::uint16_t bits_of(float value) noexcept {
    return narrow_to_float16<float, std::uint32_t, 23, 127>(value);
  }
  [[nodiscard]] static constexpr std::uint16_t bits_of(double value) noexcept {
    return narrow_to_float16<double, std::uint64_t, 52, 1023>(value);
  }
  [[nodiscard]] static constexpr std::uint16_t bits_of(long double value) noexcept {
    return bits_of(round_to_odd<double, std::uint64_t>(value));
  }
  [[nodiscard]] static constexpr float float_of(std::uint16_t bits) noexcept {
    constexpr std::uint32_t k_exponent = std::uint32_t{0x7c00} << 13;
    constexpr std::uint32_t k_rebias = std::uint32_t{127 - 15} << 23;
    constexpr std::uint32_t k_min_normal = std::uint32_t{113} << 23;
    const std::uint32_t digits = (bits & std::uint32_t{0x7fff}) << 13;
    const std::uint32_t sign = (bits & std::uint32_t{0x8000}) << 16;
    const std::uint32_t exponent = digits & k_exponent;
    const std::uint32_t normal = digits + k_rebias + (exponent == k_exponent ? k_rebias : 0);
    const auto small = std::bit_cast<std::uint32_t>(std::bit_cast<float>(digits + k_min_normal) -
                                                    std::bit_cast<float>(k_min_normal));
    return std::bit_cast<float>(sign | (exponent == 0 ? small : normal));
  }
};

// The upper half of a binary32.
struct bfloat16_format {
  [[nodiscard]] static constexpr std::uint16_t bits_of(float value) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
    return static_cast<std::uint16_t>(is_nan ? bits >> 16 | 0x40 : rounded);
  }
  template <std::floating_point Wide>
  [[nodiscard]] static constexpr std::uint16_t bits_of(Wide value) noexcept {
    return bits_of(round_to_odd<float, std::uint32_t>(value));
  }
  [[nodiscard]] static constexpr float float_of(std::uint16_t bits) noexcept {
    return std::bit_cast<float>(std::uint32_t{bits} << 16);
  }
};

// The common part of both types.
template <class Half, class Format>
class half {
 public:
  half() noexcept = default;
  template <class Number>
    requires std::is_arithmetic_v<Number>
  constexpr half(Number value) noexcept : bits_(Format::bits_of(as_floating(value))) {}
  constexpr operator float() const noexcept { return Format::float_of(bits_); }

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
class float16 : public detail::half<float16, detail::float16_format> {
 public:
  using half::half;
};
// The upper half of a binary32.
class bfloat16 : public detail::half<bfloat16, detail::bfloat16_format> {
 public:
  using half::half;
};

}  // namespace v1
}  // namespace isthmus
