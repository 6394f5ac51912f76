// SPDX-License-Identifier: Apache-2.0
#include "array/dtype.hpp"

#include <string_view>

#include "core/expects.hpp"

namespace isthmus {
namespace {

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

bool is_safe_float(Dtype source_dtype, Dtype target_dtype) noexcept {
  ISTHMUS_EXPECTS(facts_of(source_dtype).kind == 'f' && facts_of(target_dtype).kind == 'f',
                  source_dtype, target_dtype);
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
                k_dtypes, facts_of(ISTHMUS_CLONGDOUBLE).name);
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
