// SPDX-License-Identifier: Apache-2.0
#pragma once
// The dtypes of array elements, and the casting rules between them. Thread-safe.

#include <isthmus/isthmus.h>

#include <array>
#include <cstddef>
#include <string_view>

#include "core/status.hpp"

namespace isthmus {

using Dtype = isthmus_dtype_t;
using Casting = isthmus_casting_t;

// Dtypes have the numbers 1 to `k_dtypes`.
constexpr std::size_t k_dtypes = 17;
constexpr std::size_t k_largest_element = 2 * sizeof(long double);

struct DtypeFacts {
  const char* name;
  std::size_t nbytes;
  std::size_t alignment;
  char kind;  // as in NumPy: 'b', 'i', 'u', 'f' or 'c'
  std::uint8_t dlpack_code;
};

[[nodiscard]] constexpr bool is_dtype(Dtype number) noexcept {
  return number >= 1 && static_cast<std::size_t>(number) <= k_dtypes;
}
// Pre: `is_dtype(dtype)`.
[[nodiscard]] const DtypeFacts& facts_of(Dtype dtype) noexcept;

// Returns the dtype of the components of a complex dtype, or `dtype` itself if it is not complex.
[[nodiscard]] constexpr Dtype component_dtype(Dtype dtype) noexcept {
  switch (dtype) {
    case ISTHMUS_COMPLEX64: return ISTHMUS_FLOAT32;
    case ISTHMUS_COMPLEX128: return ISTHMUS_FLOAT64;
    case ISTHMUS_CLONGDOUBLE: return ISTHMUS_LONGDOUBLE;
    default: return dtype;
  }
}

// Whether the rule allows the cast. False for an invalid dtype or rule.
[[nodiscard]] bool can_cast(Dtype source_dtype, Dtype target_dtype, Casting rule) noexcept;

// Return INVALID_ARGUMENT for an unknown dtype or rule and, in the second function, for a cast that
// the rule does not allow.
[[nodiscard]] Result<void> check_dtype(Dtype dtype);
[[nodiscard]] Result<void> check_cast(Dtype source_dtype, Dtype target_dtype, Casting rule);

}  // namespace isthmus
