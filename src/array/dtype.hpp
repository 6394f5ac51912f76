// SPDX-License-Identifier: Apache-2.0
#pragma once
// The dtypes of array elements, and the casting rules between them. Thread-safe.

#include <isthmus/experimental.h>
#include <isthmus/detail/dtype_facts.hpp>

#include <cstddef>

#include "core/status.hpp"

namespace isthmus {

using Dtype = isthmus_dtype_t;
using Casting = isthmus_casting_t;

using dtype_table::facts_of;
using dtype_table::is_dtype;

// Dtypes have the numbers 1 to `k_dtypes`.
constexpr std::size_t k_dtypes = dtype_table::k_count;
constexpr std::size_t k_largest_element = 2 * sizeof(long double);

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
