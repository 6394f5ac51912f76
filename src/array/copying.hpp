#pragma once
// Copies and fills of arrays, wherever they lie.
//
// Elements that keep their dtype and run forwards on both sides are a strided copy (transfer/): the
// driver's, or the host's. All else is the host's work: directly where it can touch both sides, or
// in pieces that a device's side is read into or written from.

#include "array/layout.hpp"
#include "transfer/transfer.hpp"

namespace isthmus {

struct array_side {
  endpoint place;  // its lowest byte
  array_layout layout;
};

// Pre: the source's dtype may become the destination's. `on` null: as in `copy`. INVALID_ARGUMENT
// where the source cannot be broadcast or two elements of the destination share bytes; those of
// `copy`.
[[nodiscard]] submitted copy_array(queue* on, const array_side& destination,
                                   const array_side& source, transfer_options options);

// `value` is an element of the destination's dtype, read before this returns.
[[nodiscard]] submitted fill_array(queue* on, const array_side& destination, const std::byte* value,
                                   transfer_options options);

// Passes on what came of an operation that writes all elements. Where nothing lies between them no
// copy before it decides what is in their bytes (memory/content_list.hpp).
[[nodiscard]] submitted note_written(const array_side& destination, submitted made);

}  // namespace isthmus
