// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies and fills of arrays in any memory. Thread-safe.
//
// A copy between arrays of one dtype without negative strides is a strided copy (transfer/), which
// the driver or the host executes. The host executes all other copies: directly if it can access
// both sides, otherwise in chunks that are read from or written to the device's side.

#include "array/layout.hpp"
#include "transfer/transfer.hpp"

namespace isthmus {

struct ArraySide {
  Endpoint endpoint;  // points to the lowest byte of the array
  ArrayLayout layout;
};

// The caller's casting rule allows the source's dtype for the destination's. `queue` may be
// null, as in `copy`. INVALID_ARGUMENT if the source cannot be broadcast or two elements of the
// destination share bytes; otherwise the errors of `copy`.
[[nodiscard]] Submitted copy_array(Queue* queue, const ArraySide& destination,
                                   const ArraySide& source, TransferOptions options);

// `value` is an element of the destination's dtype. It is read before this function returns.
[[nodiscard]] Submitted fill_array(Queue* queue, const ArraySide& destination,
                                   const std::byte* value, TransferOptions options);

// Records a submitted operation that writes all elements, and returns `submitted`. If the array has
// no gaps, readers of its bytes no longer depend on earlier copies into them
// (memory/records/content_list.hpp).
[[nodiscard]] Submitted note_written(const ArraySide& destination, Submitted submitted);

}  // namespace isthmus
