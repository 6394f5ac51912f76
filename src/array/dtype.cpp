// SPDX-License-Identifier: Apache-2.0
#include "array/dtype.hpp"

#include <complex>
#include <cstdint>

namespace isthmus {
namespace {

constexpr std::uint8_t k_dl_int = 0;
constexpr std::uint8_t k_dl_uint = 1;
constexpr std::uint8_t k_dl_float = 2;
constexpr std::uint8_t k_dl_bfloat = 4;
constexpr std::uint8_t k_dl_complex = 5;
constexpr std::uint8_t k_dl_bool = 6;

template <class T>
constexpr DtypeFacts of_type(const char* name, char kind, std::uint8_t dlpack_code) noexcept {
  return {name, sizeof(T), alignof(T), kind, dlpack_code};
}

constexpr std::array<DtypeFacts, k_dtypes> k_facts{
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

// Returns the position of a dtype's kind in the order of NumPy's casting rules.
int rank_of(char kind) noexcept { return static_cast<int>(std::string_view{"buifc"}.find(kind)); }

// Returns the size in bytes of the largest integers that a float represents exactly by NumPy's
// rules. These rules count float64 as representing int64.
std::size_t integer_bytes_in(Dtype real) noexcept {
  switch (real) {
    case ISTHMUS_FLOAT16:
    case ISTHMUS_BFLOAT16: return 1;
    case ISTHMUS_FLOAT32: return 2;
    default: return 8;
  }
}

// Pre: both dtypes are real floats.
bool is_safe_float(Dtype source_dtype, Dtype target_dtype) noexcept {
  return source_dtype == target_dtype ||
         facts_of(source_dtype).nbytes < facts_of(target_dtype).nbytes ||
         (source_dtype == ISTHMUS_FLOAT64 && target_dtype == ISTHMUS_LONGDOUBLE);
}

bool is_safe(Dtype source_dtype, Dtype target_dtype) noexcept {
  if (source_dtype == target_dtype || source_dtype == ISTHMUS_BOOL) {
    return true;
  }
  const auto& source = facts_of(source_dtype);
  const auto& target = facts_of(target_dtype);
  if (rank_of(source.kind) > rank_of(target.kind)) {
    return false;
  }
  if (target.kind == source.kind && source.kind != 'c' && source.kind != 'f') {
    return source.nbytes <= target.nbytes;
  }
  if (target.kind == 'i') {
    return source.nbytes < target.nbytes;
  }
  const auto real = component_dtype(target_dtype);
  const bool is_integer = source.kind == 'i' || source.kind == 'u';
  return is_integer ? source.nbytes <= integer_bytes_in(real)
                    : is_safe_float(component_dtype(source_dtype), real);
}

std::string_view name_of(Casting rule) noexcept {
  switch (rule) {
    case ISTHMUS_CASTING_NO: return "no";
    case ISTHMUS_CASTING_SAFE: return "safe";
    case ISTHMUS_CASTING_SAME_KIND: return "same_kind";
    default: return "unsafe";
  }
}

bool is_rule(Casting rule) noexcept {
  return rule >= ISTHMUS_CASTING_NO && rule <= ISTHMUS_CASTING_UNSAFE;
}

}  // namespace

const DtypeFacts& facts_of(Dtype dtype) noexcept {
  return k_facts[static_cast<std::size_t>(dtype) - 1];
}

bool can_cast(Dtype source_dtype, Dtype target_dtype, Casting rule) noexcept {
  if (!is_dtype(source_dtype) || !is_dtype(target_dtype)) {
    return false;
  }
  switch (rule) {
    case ISTHMUS_CASTING_NO: return source_dtype == target_dtype;
    case ISTHMUS_CASTING_SAFE: return is_safe(source_dtype, target_dtype);
    case ISTHMUS_CASTING_SAME_KIND:
      return rank_of(facts_of(source_dtype).kind) <= rank_of(facts_of(target_dtype).kind);
    default: return rule == ISTHMUS_CASTING_UNSAFE;
  }
}

Result<void> check_dtype(Dtype dtype) {
  if (!is_dtype(dtype)) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "{} is not a dtype: use 1 (bool) to {} ({})", dtype,
                k_dtypes, k_facts.back().name);
  }
  return {};
}

Result<void> check_cast(Dtype source_dtype, Dtype target_dtype, Casting rule) {
  ISTHMUS_TRY(check_dtype(source_dtype));
  ISTHMUS_TRY(check_dtype(target_dtype));
  if (!is_rule(rule)) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "{} is not a casting rule: use 0 (no), 1 (safe), 2 (same_kind) or 3 (unsafe)",
                rule);
  }
  if (!can_cast(source_dtype, target_dtype, rule)) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "{} cannot be cast to {} with the casting rule \"{}\": request the dtype {}, or "
                "use a wider rule",
                facts_of(source_dtype).name, facts_of(target_dtype).name, name_of(rule),
                facts_of(source_dtype).name);
  }
  return {};
}

}  // namespace isthmus
