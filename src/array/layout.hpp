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
  // Offset of the first element in the array's address range, and size of that range. Both are 0 if
  // the array is empty.
  std::size_t first_offset = 0;
  std::size_t nbytes = 0;

  [[nodiscard]] bool is_empty() const noexcept { return nbytes == 0; }
  [[nodiscard]] std::size_t item() const noexcept { return facts_of(dtype).nbytes; }
};

// Returns the validated layout of `array`, which error messages call `name`. INVALID_ARGUMENT for
// invalid fields; OUT_OF_RANGE if it spans more than 2^61 bytes. The limit exceeds any memory and
// ensures that the sum of two spans does not overflow.
[[nodiscard]] Result<ArrayLayout> layout_of(const isthmus_array_t& array, const char* name);

// Returns the source's layout broadcast to the shape of `target_layout` by NumPy's rules.
// INVALID_ARGUMENT if the shapes do not match.
[[nodiscard]] Result<ArrayLayout> broadcast(const ArrayLayout& source_layout,
                                            const ArrayLayout& target_layout);

// Returns INVALID_ARGUMENT if two elements share bytes, or if bounded work cannot exclude it.
[[nodiscard]] Result<void> check_disjoint(const ArrayLayout& destination);

// Whether the arrays share a byte. `one_address` and `other_address` are their lowest addresses.
// Also returns true if bounded work cannot decide it.
[[nodiscard]] bool may_share_bytes(const ArrayLayout& one, std::uintptr_t one_address,
                                   const ArrayLayout& other, std::uintptr_t other_address);

}  // namespace isthmus
