// SPDX-License-Identifier: Apache-2.0
#pragma once
// The memory layout of an array, validated. Immutable, so thread-safe.

#include <cstddef>
#include <cstdint>

#include "array/dimension_list.hpp"
#include "array/dtype.hpp"

namespace isthmus {

struct ArrayDimension {
  std::int64_t count;
  std::int64_t stride;  // bytes
};

struct ArrayLayout {
  Dtype dtype = ISTHMUS_UINT8;
  DimensionList<ArrayDimension> dimensions;
  // The bytes of the array's address range before its first element, and the size of that range:
  // both 0 if the array is empty.
  std::size_t first_offset = 0;
  std::size_t nbytes = 0;

  [[nodiscard]] bool is_empty() const noexcept { return nbytes == 0; }
  [[nodiscard]] std::size_t item() const noexcept { return facts_of(dtype).nbytes; }
};

// The layout of an array that the caller passed as `name`. INVALID_ARGUMENT; OUT_OF_RANGE if it
// spans more than 2^61 bytes, which no memory has: so the sum of two spans does not overflow.
[[nodiscard]] Result<ArrayLayout> layout_of(const isthmus_array_t& array, const char* name);

// The same elements repeated to the shape of `target_layout`, by NumPy's rules. INVALID_ARGUMENT if
// the shapes do not fit.
[[nodiscard]] Result<ArrayLayout> broadcast(const ArrayLayout& source_layout,
                                            const ArrayLayout& target_layout);

// INVALID_ARGUMENT if two elements share bytes, or if that cannot be excluded with bounded work.
[[nodiscard]] Result<void> check_disjoint(const ArrayLayout& destination);

// Whether the arrays have a byte in common; `at` and `other_at` are their lowest addresses. Also
// true if that cannot be decided with bounded work.
[[nodiscard]] bool may_share_bytes(const ArrayLayout& one, std::uintptr_t at,
                                   const ArrayLayout& other, std::uintptr_t other_at);

}  // namespace isthmus
