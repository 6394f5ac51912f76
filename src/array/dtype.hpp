// SPDX-License-Identifier: Apache-2.0
#pragma once
// The dtypes of array elements, and the casting rules between them. Thread-safe.

#include <isthmus/isthmus.h>

#include <array>
#include <cstddef>
#include <string_view>

#include "core/status.hpp"

namespace isthmus {

using dtype = isthmus_dtype_t;
using casting = isthmus_casting_t;

// The numbers of dtypes are 1 to `k_dtypes`.
constexpr std::size_t k_dtypes = 17;
constexpr std::size_t k_largest_element = 2 * sizeof(long double);

struct dtype_facts {
  const char* name;
  std::size_t nbytes;
  std::size_t alignment;
  char kind;
  std::uint8_t dlpack_code;
};

[[nodiscard]] constexpr bool is_dtype(dtype number) noexcept {
  return number >= 1 && static_cast<std::size_t>(number) <= k_dtypes;
}
// Pre: `is_dtype`.
[[nodiscard]] const dtype_facts& facts_of(dtype of) noexcept;

// The dtype of a complex number's components; the dtype itself if it is not complex.
[[nodiscard]] constexpr dtype part_of(dtype of) noexcept {
  switch (of) {
    case ISTHMUS_COMPLEX64: return ISTHMUS_FLOAT32;
    case ISTHMUS_COMPLEX128: return ISTHMUS_FLOAT64;
    case ISTHMUS_CLONGDOUBLE: return ISTHMUS_LONGDOUBLE;
    default: return of;
  }
}

// Also false if a number is not a dtype or not a rule.
[[nodiscard]] bool can_cast(dtype from, dtype to, casting rule) noexcept;

// INVALID_ARGUMENT with a message that names the dtypes and the rule.
[[nodiscard]] result<void> check_dtype(dtype given);
[[nodiscard]] result<void> check_cast(dtype from, dtype to, casting rule);

}  // namespace isthmus
