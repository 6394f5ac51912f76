// SPDX-License-Identifier: Apache-2.0
// The dtypes of array elements: name, size, kind and DLPack code of each. The only table of them:
// the library, the C++ API (dtype.hpp) and the Python package read it. For use by Isthmus only; it
// includes nothing of the C++ API, which the library does not use.
//
// Thread safety: immutable.
#pragma once

#include <isthmus/detail/cxx20.hpp>

#include <isthmus/experimental.h>

#include <complex>
#include <cstddef>
#include <cstdint>

namespace isthmus {
inline namespace v1 {
namespace dtype_table {

struct dtype_facts {
  const char* name;  // as in NumPy, and "longdouble" and "clongdouble" on every machine
  std::size_t nbytes;
  std::size_t alignment;
  char kind;  // as in NumPy: 'b', 'i', 'u', 'f' or 'c'
  std::uint8_t dlpack_code;
};

inline constexpr std::uint8_t k_dl_int = 0;
inline constexpr std::uint8_t k_dl_uint = 1;
inline constexpr std::uint8_t k_dl_float = 2;
inline constexpr std::uint8_t k_dl_bfloat = 4;
inline constexpr std::uint8_t k_dl_complex = 5;
inline constexpr std::uint8_t k_dl_bool = 6;

template <class T>
[[nodiscard]] constexpr dtype_facts of_type(const char* name, char kind,
                                            std::uint8_t dlpack_code) noexcept {
  return {name, sizeof(T), alignof(T), kind, dlpack_code};
}

// In the order of their numbers, which begin with 1.
inline constexpr dtype_facts k_all[] = {
    of_type<std::uint8_t>("bool", 'b', k_dl_bool),
    of_type<std::int8_t>("int8", 'i', k_dl_int),
    of_type<std::int16_t>("int16", 'i', k_dl_int),
    of_type<std::int32_t>("int32", 'i', k_dl_int),
    of_type<std::int64_t>("int64", 'i', k_dl_int),
    of_type<std::uint8_t>("uint8", 'u', k_dl_uint),
    of_type<std::uint16_t>("uint16", 'u', k_dl_uint),
    of_type<std::uint32_t>("uint32", 'u', k_dl_uint),
    of_type<std::uint64_t>("uint64", 'u', k_dl_uint),
    of_type<std::uint16_t>("float16", 'f', k_dl_float),
    of_type<std::uint16_t>("bfloat16", 'f', k_dl_bfloat),
    of_type<float>("float32", 'f', k_dl_float),
    of_type<double>("float64", 'f', k_dl_float),
    of_type<long double>("longdouble", 'f', k_dl_float),
    of_type<std::complex<float>>("complex64", 'c', k_dl_complex),
    of_type<std::complex<double>>("complex128", 'c', k_dl_complex),
    of_type<std::complex<long double>>("clongdouble", 'c', k_dl_complex)};

inline constexpr std::size_t k_count = sizeof k_all / sizeof *k_all;
static_assert(k_count == ISTHMUS_CLONGDOUBLE);

[[nodiscard]] constexpr bool is_dtype(isthmus_dtype_t number) noexcept {
  return number >= 1 && static_cast<std::size_t>(number) <= k_count;
}
// Precondition: is_dtype(number).
[[nodiscard]] constexpr const dtype_facts& facts_of(isthmus_dtype_t number) noexcept {
  return k_all[static_cast<std::size_t>(number) - 1];
}

static_assert(facts_of(ISTHMUS_FLOAT32).nbytes == 4 && facts_of(ISTHMUS_UINT8).kind == 'u');

}  // namespace dtype_table
}  // namespace v1
}  // namespace isthmus
