#pragma once
// Where the elements of an array lie, checked.

#include <cstddef>
#include <cstdint>

#include "array/dimension_list.hpp"
#include "array/dtype.hpp"

namespace isthmus {

struct array_dimension {
  std::int64_t count;
  std::int64_t stride;  // bytes
};

struct array_layout {
  dtype of = ISTHMUS_UINT8;
  dimension_list<array_dimension> dimensions;
  // Of the bytes from its lowest to its highest those in front of the first element, and all of
  // them: 0 where it has no element.
  std::size_t before = 0;
  std::size_t nbytes = 0;

  [[nodiscard]] bool is_empty() const noexcept { return nbytes == 0; }
  [[nodiscard]] std::size_t item() const noexcept { return facts_of(of).nbytes; }
};

// Of what a caller gave as `name`. INVALID_ARGUMENT; OUT_OF_RANGE for what spans more than 2^61
// bytes, which no memory has: sums of two of them are numbers still.
[[nodiscard]] result<array_layout> layout_of(const isthmus_array_t& given, const char* name);

// The same elements repeated to the shape of `to`, by NumPy's rules: INVALID_ARGUMENT where they
// cannot be.
[[nodiscard]] result<array_layout> broadcast(const array_layout& given, const array_layout& to);

// INVALID_ARGUMENT where two elements of it share bytes, or may do so for all that can be told with
// bounded work.
[[nodiscard]] result<void> check_apart(const array_layout& destination);

// Whether they have a byte in common, each at its lowest address; true also where that cannot be
// told with bounded work.
[[nodiscard]] bool may_share_bytes(const array_layout& one, std::uintptr_t at,
                                   const array_layout& other, std::uintptr_t other_at);

}  // namespace isthmus
