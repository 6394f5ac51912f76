// SPDX-License-Identifier: Apache-2.0
#pragma once
// A reference model of conversions: decodes elements to long double, which represents all of them
// exactly where it has 64 significant digits, and converts as plainly as possible.

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "array/dtype.hpp"

namespace values {

using isthmus::Dtype;

struct number {
  long double real = 0;
  long double imaginary = 0;
};

template <class T>
T raw(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// The value of a 16-bit float: sign, 5 exponent and 10 mantissa bits (float16), or 8 and 7
// (bfloat16).
inline long double of_half(std::uint16_t bits, int exponent_bits) {
  const int digits = 15 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = bits >> digits & ((1 << exponent_bits) - 1);
  const int rest = bits & ((1 << digits) - 1);
  const long double sign = (bits & 0x8000) != 0 ? -1.0L : 1.0L;
  if (exponent == (1 << exponent_bits) - 1) {
    return rest != 0 ? std::numeric_limits<long double>::quiet_NaN()
                     : sign * std::numeric_limits<long double>::infinity();
  }
  const int whole = exponent == 0 ? rest : rest + (1 << digits);
  return sign * std::ldexp(static_cast<long double>(whole), std::max(exponent, 1) - bias - digits);
}

inline number decode(Dtype of, const std::byte* at) {
  switch (of) {
    case ISTHMUS_BOOL: return {raw<std::uint8_t>(at) != 0 ? 1.0L : 0.0L};
    case ISTHMUS_INT8: return {static_cast<long double>(raw<std::int8_t>(at))};
    case ISTHMUS_INT16: return {static_cast<long double>(raw<std::int16_t>(at))};
    case ISTHMUS_INT32: return {static_cast<long double>(raw<std::int32_t>(at))};
    case ISTHMUS_INT64: return {static_cast<long double>(raw<std::int64_t>(at))};
    case ISTHMUS_UINT8: return {static_cast<long double>(raw<std::uint8_t>(at))};
    case ISTHMUS_UINT16: return {static_cast<long double>(raw<std::uint16_t>(at))};
    case ISTHMUS_UINT32: return {static_cast<long double>(raw<std::uint32_t>(at))};
    case ISTHMUS_UINT64: return {static_cast<long double>(raw<std::uint64_t>(at))};
    case ISTHMUS_FLOAT16: return {of_half(raw<std::uint16_t>(at), 5)};
    case ISTHMUS_BFLOAT16: return {of_half(raw<std::uint16_t>(at), 8)};
    case ISTHMUS_FLOAT32: return {raw<float>(at)};
    case ISTHMUS_FLOAT64: return {raw<double>(at)};
    case ISTHMUS_LONGDOUBLE: return {raw<long double>(at)};
    case ISTHMUS_COMPLEX64: return {raw<float>(at), raw<float>(at + sizeof(float))};
    case ISTHMUS_COMPLEX128: return {raw<double>(at), raw<double>(at + sizeof(double))};
    default: return {raw<long double>(at), raw<long double>(at + sizeof(long double))};
  }
}

// Rounds to `digits` significant digits, ties to even. `least` and `most` are the exponents of the
// smallest and the largest normal number.
inline long double rounded(long double x, int digits, int min_exponent, int max_exponent) {
  if (x == 0 || std::isnan(x) || std::isinf(x)) return x;
  const int exponent = std::max(std::ilogb(x), min_exponent);
  const long double unit = std::ldexp(1.0L, exponent - digits + 1);
  const long double nearest = std::rint(x / unit) * unit;
  const long double limit = std::ldexp(1.0L, max_exponent + 1);
  return std::abs(nearest) >= limit ? std::copysign(std::numeric_limits<long double>::infinity(), x)
                                    : std::copysign(nearest, x);
}

inline long double to_real(long double x, Dtype part) {
  switch (part) {
    case ISTHMUS_FLOAT16: return rounded(x, 11, -14, 15);
    case ISTHMUS_BFLOAT16: return rounded(x, 8, -126, 127);
    case ISTHMUS_FLOAT32: return rounded(x, 24, -126, 127);
    case ISTHMUS_FLOAT64: return rounded(x, 53, -1022, 1023);
    default: return x;
  }
}

// Truncates to a signed integer of `width` bits as x86 does: out of range gives the lowest value.
inline std::int64_t cut_off(long double x, int width) {
  const long double limit = std::ldexp(1.0L, width - 1);
  const long double whole = std::trunc(x);
  return whole >= -limit && whole < limit ? static_cast<std::int64_t>(whole)
                                          : static_cast<std::int64_t>(-limit);
}

// The bits of the resulting integer, extended to 64.
inline std::uint64_t to_bits(long double x, Dtype to, Dtype from) {
  const char from_kind = isthmus::facts_of(from).kind;
  if (from_kind != 'f' && from_kind != 'c') {  // an integer, whose bits stay as they are
    return x < 0 ? static_cast<std::uint64_t>(static_cast<std::int64_t>(x))
                 : static_cast<std::uint64_t>(x);
  }
  const Dtype real = isthmus::component_dtype(from);
  const std::uint64_t top = std::uint64_t{1} << 63;
  if (to == ISTHMUS_UINT64) {
    return x >= std::ldexp(1.0L, 63)
               ? static_cast<std::uint64_t>(cut_off(x - std::ldexp(1.0L, 63), 64)) ^ top
               : static_cast<std::uint64_t>(cut_off(x, 64));
  }
  if (to == ISTHMUS_UINT32 && real == ISTHMUS_FLOAT32) {
    return x >= std::ldexp(1.0L, 31)
               ? static_cast<std::uint64_t>(cut_off(x - std::ldexp(1.0L, 31), 32)) ^ 0x80000000U
               : static_cast<std::uint64_t>(cut_off(x, 32));
  }
  const bool wide = to == ISTHMUS_INT64 || to == ISTHMUS_UINT32;
  const bool narrow = real == ISTHMUS_LONGDOUBLE &&
                      (to == ISTHMUS_INT8 || to == ISTHMUS_UINT8 || to == ISTHMUS_INT16);
  return static_cast<std::uint64_t>(cut_off(x, wide ? 64 : narrow ? 16 : 32));
}

inline bool same_real(long double got, long double want) {
  return std::isnan(want) ? std::isnan(got)
                          : got == want && std::signbit(got) == std::signbit(want);
}

// Whether `got`, an element of `to`, is the correct conversion of `given`, an element of `from`.
inline bool is_conversion(Dtype to, const std::byte* got, Dtype from, const std::byte* source) {
  const number x = decode(from, source);
  const char kind = isthmus::facts_of(to).kind;
  if (kind == 'b') {
    return raw<std::uint8_t>(got) == (x.real != 0 || x.imaginary != 0 ? 1 : 0);
  }
  if (kind == 'i' || kind == 'u') {
    const std::uint64_t want = to_bits(x.real, to, from);
    return std::memcmp(got, &want, isthmus::facts_of(to).nbytes) == 0;  // little-endian
  }
  const Dtype part = isthmus::component_dtype(to);
  const number result = decode(to, got);
  return same_real(result.real, to_real(x.real, part)) &&
         (kind != 'c' || same_real(result.imaginary, to_real(x.imaginary, part)));
}

}  // namespace values
