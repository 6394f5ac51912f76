// SPDX-License-Identifier: Apache-2.0
// Reference implementation for tests of array copies: arrays of any dtype and strides in plain host
// memory, copied one element at a time.
#pragma once

#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

#include "support/bytes.hpp"

namespace support {

using lengths = std::vector<std::int64_t>;

inline constexpr isthmus_dtype_t k_last_dtype = ISTHMUS_CLONGDOUBLE;

inline isthmus_dtype_info_t dtype_info(isthmus_dtype_t of) {
  isthmus_dtype_info_t info{};
  info.struct_size = sizeof info;
  EXPECT_EQ(isthmus_dtype_info(of, &info), ISTHMUS_OK);
  return info;
}

namespace detail {

template <class T>
void put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}
template <class T>
int get(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<int>(value);
}
inline std::uint32_t float_bits(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline float float_of(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace detail

// Writes a number from -100 to 100, which every dtype that has its sign represents. Complex dtypes
// get `imaginary` too; the others ignore it.
inline void put_number(isthmus_dtype_t of, std::byte* at, int number, int imaginary) {
  using namespace detail;
  const auto real = static_cast<float>(number);
  switch (of) {
    case ISTHMUS_BOOL: return put(at, static_cast<std::uint8_t>(number != 0));
    case ISTHMUS_INT8: return put(at, static_cast<std::int8_t>(number));
    case ISTHMUS_INT16: return put(at, static_cast<std::int16_t>(number));
    case ISTHMUS_INT32: return put(at, static_cast<std::int32_t>(number));
    case ISTHMUS_INT64: return put(at, static_cast<std::int64_t>(number));
    case ISTHMUS_UINT8: return put(at, static_cast<std::uint8_t>(number));
    case ISTHMUS_UINT16: return put(at, static_cast<std::uint16_t>(number));
    case ISTHMUS_UINT32: return put(at, static_cast<std::uint32_t>(number));
    case ISTHMUS_UINT64: return put(at, static_cast<std::uint64_t>(number));
    case ISTHMUS_FLOAT16: {  // no such number is small enough to be subnormal
      const std::uint32_t bits = float_bits(real);
      const std::uint32_t digits = number == 0 ? 0 : (bits & 0x7fffffff) - (112U << 23);
      return put(at, static_cast<std::uint16_t>((bits >> 16 & 0x8000) | digits >> 13));
    }
    case ISTHMUS_BFLOAT16: return put(at, static_cast<std::uint16_t>(float_bits(real) >> 16));
    case ISTHMUS_FLOAT32: return put(at, real);
    case ISTHMUS_FLOAT64: return put(at, static_cast<double>(number));
    case ISTHMUS_LONGDOUBLE: return put(at, static_cast<long double>(number));
    case ISTHMUS_COMPLEX64:
      put(at, real);
      return put(at + sizeof(float), static_cast<float>(imaginary));
    case ISTHMUS_COMPLEX128:
      put(at, static_cast<double>(number));
      return put(at + sizeof(double), static_cast<double>(imaginary));
    default:
      put(at, static_cast<long double>(number));
      return put(at + sizeof(long double), static_cast<long double>(imaginary));
  }
}

struct small_number {
  int real;
  int imaginary = 0;
};

inline small_number get_number(isthmus_dtype_t of, const std::byte* at) {
  using namespace detail;
  switch (of) {
    case ISTHMUS_BOOL: return {get<std::uint8_t>(at) != 0 ? 1 : 0};
    case ISTHMUS_INT8: return {get<std::int8_t>(at)};
    case ISTHMUS_INT16: return {get<std::int16_t>(at)};
    case ISTHMUS_INT32: return {get<std::int32_t>(at)};
    case ISTHMUS_INT64: return {get<std::int64_t>(at)};
    case ISTHMUS_UINT8: return {get<std::uint8_t>(at)};
    case ISTHMUS_UINT16: return {get<std::uint16_t>(at)};
    case ISTHMUS_UINT32: return {get<std::uint32_t>(at)};
    case ISTHMUS_UINT64: return {get<std::uint64_t>(at)};
    case ISTHMUS_FLOAT16: {
      const auto bits = static_cast<std::uint32_t>(get<std::uint16_t>(at));
      const std::uint32_t digits =
          (bits & 0x7fff) == 0 ? 0 : ((bits & 0x7fff) << 13) + (112U << 23);
      return {static_cast<int>(float_of((bits & 0x8000) << 16 | digits))};
    }
    case ISTHMUS_BFLOAT16:
      return {static_cast<int>(float_of(static_cast<std::uint32_t>(get<std::uint16_t>(at)) << 16))};
    case ISTHMUS_FLOAT32: return {get<float>(at)};
    case ISTHMUS_FLOAT64: return {get<double>(at)};
    case ISTHMUS_LONGDOUBLE: return {get<long double>(at)};
    case ISTHMUS_COMPLEX64: return {get<float>(at), get<float>(at + sizeof(float))};
    case ISTHMUS_COMPLEX128: return {get<double>(at), get<double>(at + sizeof(double))};
    default: return {get<long double>(at), get<long double>(at + sizeof(long double))};
  }
}

struct nd_array {
  isthmus_dtype_t dtype = ISTHMUS_UINT8;
  lengths shape, strides;
  std::size_t first = 0;   // offset of the first element in the array's memory, in bytes
  std::size_t nbytes = 0;  // of the array's memory

  [[nodiscard]] std::size_t item() const { return dtype_info(dtype).nbytes; }
  [[nodiscard]] std::size_t count() const {
    return static_cast<std::size_t>(
        std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>{}));
  }
  [[nodiscard]] isthmus_array_t at(isthmus_endpoint_t place) const {
    place.offset += first;
    return {place, dtype, shape.size(), shape.data(), strides.data()};
  }
  // Computes the size of the memory, with `before` unused bytes before the elements and `after`
  // after them.
  void measure(std::size_t before, std::size_t after) {
    std::int64_t low = 0, high = 0;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      (strides[i] < 0 ? low : high) += (shape[i] - 1) * strides[i];
    }
    first = before + static_cast<std::size_t>(-low);
    nbytes = first + static_cast<std::size_t>(high) + item() + after;
  }
  // Calls `visit(byte)` with the byte offset of every element in row-major order.
  template <class Visit>
  void each(Visit&& visit) const {
    lengths index(shape.size());
    for (std::size_t left = count(); left != 0; --left) {
      std::int64_t byte = static_cast<std::int64_t>(first);
      for (std::size_t i = 0; i < index.size(); ++i) byte += index[i] * strides[i];
      visit(static_cast<std::size_t>(byte));
      for (std::size_t i = index.size(); i != 0 && ++index[i - 1] == shape[i - 1]; --i)
        index[i - 1] = 0;
    }
  }
  // By NumPy's broadcasting rules. Precondition: the shapes are compatible.
  [[nodiscard]] nd_array broadcast_to(const lengths& target_shape) const {
    nd_array result = *this;
    while (result.shape.size() > target_shape.size()) {
      result.shape.erase(result.shape.begin()), result.strides.erase(result.strides.begin());
    }
    while (result.shape.size() < target_shape.size()) {
      result.shape.insert(result.shape.begin(), 1),
          result.strides.insert(result.strides.begin(), 0);
    }
    for (std::size_t i = 0; i < target_shape.size(); ++i) {
      if (result.shape[i] == 1) result.strides[i] = 0;
    }
    result.shape = target_shape;
    return result;
  }
};

// Memory for `of` whose elements are small numbers, some of them negative if `any_sign` is set and
// the dtype is signed. The bytes between the elements are random.
inline bytes numbers_in(const nd_array& of, std::mt19937_64& random, bool any_sign) {
  bytes memory(of.nbytes);
  for (auto& each : memory) each = static_cast<std::byte>(random() % 100);
  const char kind = dtype_info(of.dtype).kind;
  const bool may_be_negative = any_sign && kind != 'u' && kind != 'b';
  of.each([&](std::size_t at) {
    const int number = static_cast<int>(random() % 101);
    const bool is_negative = may_be_negative && random() % 2 == 0;
    put_number(of.dtype, memory.data() + at, is_negative ? -number : number,
               static_cast<int>(random() % 50));
  });
  return memory;
}

// Returns the memory of the target after a copy: `into` holds `to` and `from` holds `given`. The
// source is broadcast and converted as the library does.
inline bytes modelled(bytes into, const nd_array& to, const bytes& from, const nd_array& given) {
  const nd_array source = given.broadcast_to(to.shape);
  std::vector<std::size_t> places;
  source.each([&](std::size_t at) { places.push_back(at); });
  std::size_t next = 0;
  const std::size_t item = to.item();
  to.each([&](std::size_t at) {
    const std::byte* element = from.data() + places[next++];
    if (to.dtype == source.dtype) {
      std::memcpy(into.data() + at, element, item);
      return;
    }
    const small_number number = get_number(source.dtype, element);
    const bool is_set = number.real != 0 || number.imaginary != 0;
    put_number(to.dtype, into.data() + at, to.dtype == ISTHMUS_BOOL ? is_set : number.real,
               number.imaginary);
  });
  return into;
}

// Copies from `like` those bytes of each element that hold no part of its value. Only long doubles
// of 80 bits have such padding.
inline void take_padding(const nd_array& of, bytes& into, const bytes& like) {
  if (dtype_info(of.dtype).kind != 'f' && dtype_info(of.dtype).kind != 'c') return;
  if (of.dtype != ISTHMUS_LONGDOUBLE && of.dtype != ISTHMUS_CLONGDOUBLE) return;
  constexpr std::size_t k_part = sizeof(long double);
  constexpr std::size_t k_used = std::numeric_limits<long double>::digits == 64 ? 10 : k_part;
  of.each([&](std::size_t at) {
    for (std::size_t part = at; part < at + of.item(); part += k_part) {
      std::copy_n(like.data() + part + k_used, k_part - k_used, into.data() + part + k_used);
    }
  });
}

// Strides of dimensions nested in any order, with gaps, of either sign; some are 0 if `may_repeat`
// is set.
inline lengths random_strides(std::mt19937_64& random, const lengths& shape, std::size_t item,
                              bool may_repeat) {
  std::vector<std::size_t> order(shape.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), random);
  lengths strides(shape.size());
  auto inside = static_cast<std::int64_t>(item);
  const bool backwards = random() % 2 == 0;
  for (const std::size_t i : order) {
    strides[i] = inside + static_cast<std::int64_t>(random() % 3 % 2 * (random() % 20));
    inside = strides[i] * shape[i];
    if (backwards && random() % 3 == 0) strides[i] = -strides[i];
    if (may_repeat && random() % 8 == 0) strides[i] = 0;
  }
  return strides;
}

inline nd_array random_array(std::mt19937_64& random, isthmus_dtype_t of, const lengths& shape,
                             bool may_repeat) {
  nd_array made{of, shape, {}};
  made.strides = random_strides(random, shape, made.item(), may_repeat);
  made.measure(random() % 9, random() % 9);
  return made;
}

// Row-major, without gaps.
inline nd_array dense_array(isthmus_dtype_t of, const lengths& shape) {
  nd_array made{of, shape, lengths(shape.size())};
  auto inside = static_cast<std::int64_t>(made.item());
  for (std::size_t i = shape.size(); i-- > 0;) {
    made.strides[i] = inside;
    inside *= shape[i];
  }
  made.measure(0, 0);
  return made;
}

}  // namespace support
