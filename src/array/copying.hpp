// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies and fills of arrays in any memory. Thread-safe.
//
// Elements whose dtype stays the same and whose strides are positive on both sides become a strided
// copy (transfer/), by the driver or the host. Everything else is converted by the host: directly
// if it can access both sides, or in chunks that are read from or written to a device's side.

#include "array/layout.hpp"
#include "transfer/transfer.hpp"

namespace isthmus {

struct array_side {
  endpoint place;  // the lowest byte of the array
  array_layout layout;
};

// Pre: the rules allow casting the source's dtype to the destination's. `on` may be null, as in
// `copy`. INVALID_ARGUMENT if the source cannot be broadcast or two elements of the destination
// share bytes; otherwise the errors of `copy`.
[[nodiscard]] submitted copy_array(queue* on, const array_side& destination,
                                   const array_side& source, transfer_options options);

// `value` is an element of the destination's dtype. It is read before this function returns.
[[nodiscard]] submitted fill_array(queue* on, const array_side& destination, const std::byte* value,
                                   transfer_options options);

// Passes on the result of an operation that writes all elements. If the array has no gaps, the
// contents of its bytes no longer depend on earlier copies (memory/content_list.hpp).
[[nodiscard]] submitted note_written(const array_side& destination, submitted made);

}  // namespace isthmus
