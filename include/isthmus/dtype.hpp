// SPDX-License-Identifier: Apache-2.0
// The type of an array's elements: `dtype` at run time, `dtype_of<T>` at compile time.
//
//   static_assert(isthmus::dtype_of<float> == isthmus::dtype::float32);
//   isthmus::can_cast(isthmus::dtype::int32, isthmus::dtype::float32);   // false: not every value
//
// An element is bool, an integer of 1, 2, 4 or 8 bytes, float16, bfloat16, float, double, long
// double, std::complex of the last three, or, where the compiler has them, std::float16_t and
// std::bfloat16_t. Structures and objects are not elements.
//
// Cost: none at run time. Thread safety: as plain values.
#pragma once

#include <isthmus/detail/dtype_facts.hpp>
#include <isthmus/error.hpp>
#include <isthmus/float16.hpp>

#include <complex>
#include <string_view>
#if defined(__has_include)
#if __has_include(<stdfloat>)
#include <stdfloat>
#endif
#endif

namespace isthmus {
inline namespace v1 {

// The element types. `bool_` has its underscore because bool is a keyword, as in NumPy.
enum class dtype : isthmus_dtype_t {
  bool_ = ISTHMUS_BOOL,
  int8 = ISTHMUS_INT8,
  int16 = ISTHMUS_INT16,
  int32 = ISTHMUS_INT32,
  int64 = ISTHMUS_INT64,
  uint8 = ISTHMUS_UINT8,
  uint16 = ISTHMUS_UINT16,
  uint32 = ISTHMUS_UINT32,
  uint64 = ISTHMUS_UINT64,
  float16 = ISTHMUS_FLOAT16,
  bfloat16 = ISTHMUS_BFLOAT16,
  float32 = ISTHMUS_FLOAT32,
  float64 = ISTHMUS_FLOAT64,
  longdouble = ISTHMUS_LONGDOUBLE,
  complex64 = ISTHMUS_COMPLEX64,
  complex128 = ISTHMUS_COMPLEX128,
  clongdouble = ISTHMUS_CLONGDOUBLE,
};

// The conversions of dtype that a copy may perform, by NumPy's rules. Each rule includes the
// previous ones.
enum class casting : isthmus_casting_t {
  no = ISTHMUS_CASTING_NO,
  safe = ISTHMUS_CASTING_SAFE,  // every value is preserved
  // Within a kind, or to a later kind in the order bool, unsigned integer, integer, float, complex.
  same_kind = ISTHMUS_CASTING_SAME_KIND,
  unsafe = ISTHMUS_CASTING_UNSAFE,
};

namespace detail {

// Returns 0 for types that are not elements.
template <class T>
[[nodiscard]] constexpr isthmus_dtype_t integer_dtype() noexcept {
  constexpr isthmus_dtype_t first = std::is_signed_v<T> ? ISTHMUS_INT8 : ISTHMUS_UINT8;
  switch (sizeof(T)) {
    case 1: return first;
    case 2: return first + 1;
    case 4: return first + 2;
    case 8: return first + 3;
    default: return 0;
  }
}

template <class T>
[[nodiscard]] constexpr isthmus_dtype_t float_dtype() noexcept {
#if defined(__STDCPP_FLOAT16_T__)
  if constexpr (std::is_same_v<T, std::float16_t>) return ISTHMUS_FLOAT16;
#endif
#if defined(__STDCPP_BFLOAT16_T__)
  if constexpr (std::is_same_v<T, std::bfloat16_t>) return ISTHMUS_BFLOAT16;
#endif
  if constexpr (std::is_same_v<T, v1::float16>) return ISTHMUS_FLOAT16;
  if constexpr (std::is_same_v<T, v1::bfloat16>) return ISTHMUS_BFLOAT16;
  if constexpr (std::is_same_v<T, float>) return ISTHMUS_FLOAT32;
  if constexpr (std::is_same_v<T, double>) return ISTHMUS_FLOAT64;
  if constexpr (std::is_same_v<T, long double>) return ISTHMUS_LONGDOUBLE;
  if constexpr (std::is_same_v<T, std::complex<float>>) return ISTHMUS_COMPLEX64;
  if constexpr (std::is_same_v<T, std::complex<double>>) return ISTHMUS_COMPLEX128;
  if constexpr (std::is_same_v<T, std::complex<long double>>) return ISTHMUS_CLONGDOUBLE;
  return 0;
}

template <class T>
[[nodiscard]] constexpr isthmus_dtype_t dtype_number() noexcept {
  using plain = std::remove_const_t<T>;
  if constexpr (std::is_same_v<plain, bool>) {
    return ISTHMUS_BOOL;
  } else if constexpr (std::is_integral_v<plain>) {
    return integer_dtype<plain>();
  } else {
    return float_dtype<plain>();
  }
}

[[noreturn]] inline void raise_no_dtype(isthmus_dtype_t number) {
  raise(status::invalid_argument, std::to_string(number) + " is not the number of a dtype");
}

}  // namespace detail

// A type that an array may hold. Elements of const T are read-only.
template <class T>
concept element =
    !std::is_volatile_v<T> && !std::is_reference_v<T> && detail::dtype_number<T>() != 0;

// The same for T and const T.
template <element T>
inline constexpr dtype dtype_of = static_cast<dtype>(detail::dtype_number<T>());

// Calls `function.template operator()<T>()` with the T of the dtype. Throws invalid_argument for a
// number that is not a dtype.
template <class Function>
decltype(auto) visit(isthmus::dtype dtype, Function&& function) {
  switch (dtype) {
    case isthmus::dtype::bool_: return function.template operator()<bool>();
    case isthmus::dtype::int8: return function.template operator()<std::int8_t>();
    case isthmus::dtype::int16: return function.template operator()<std::int16_t>();
    case isthmus::dtype::int32: return function.template operator()<std::int32_t>();
    case isthmus::dtype::int64: return function.template operator()<std::int64_t>();
    case isthmus::dtype::uint8: return function.template operator()<std::uint8_t>();
    case isthmus::dtype::uint16: return function.template operator()<std::uint16_t>();
    case isthmus::dtype::uint32: return function.template operator()<std::uint32_t>();
    case isthmus::dtype::uint64: return function.template operator()<std::uint64_t>();
    case isthmus::dtype::float16: return function.template operator()<float16>();
    case isthmus::dtype::bfloat16: return function.template operator()<bfloat16>();
    case isthmus::dtype::float32: return function.template operator()<float>();
    case isthmus::dtype::float64: return function.template operator()<double>();
    case isthmus::dtype::longdouble: return function.template operator()<long double>();
    case isthmus::dtype::complex64: return function.template operator()<std::complex<float>>();
    case isthmus::dtype::complex128: return function.template operator()<std::complex<double>>();
    case isthmus::dtype::clongdouble:
      return function.template operator()<std::complex<long double>>();
  }
  detail::raise_no_dtype(static_cast<isthmus_dtype_t>(dtype));
}

namespace detail {

[[nodiscard]] inline const dtype_table::dtype_facts& facts_of(isthmus::dtype dtype) {
  const auto number = static_cast<isthmus_dtype_t>(dtype);
  if (!dtype_table::is_dtype(number)) raise_no_dtype(number);
  return dtype_table::facts_of(number);
}

}  // namespace detail

// Bytes of an element. Throws invalid_argument for a number that is not a dtype.
[[nodiscard]] inline std::size_t nbytes(isthmus::dtype dtype) {
  return detail::facts_of(dtype).nbytes;
}
// The name as in NumPy: "float32". The string is never freed. Throws as nbytes().
[[nodiscard]] inline std::string_view name(isthmus::dtype dtype) {
  return detail::facts_of(dtype).name;
}
// True if `casting` allows elements of `source_dtype` to be converted to `target_dtype`.
[[nodiscard]] inline bool can_cast(dtype source_dtype, dtype target_dtype,
                                   isthmus::casting casting = isthmus::casting::safe) noexcept {
  return isthmus_can_cast(static_cast<isthmus_dtype_t>(source_dtype),
                          static_cast<isthmus_dtype_t>(target_dtype),
                          static_cast<isthmus_casting_t>(casting)) != 0;
}

}  // namespace v1
}  // namespace isthmus
