#pragma once
// N-dimensional blocks on queues, and cut into parts.

#include "core/strided.hpp"
#include "transfer/parts.hpp"

namespace isthmus {

// In as few operations as can be, each behind the one before; the last one's event. Where one is
// refused nothing is in flight.
[[nodiscard]] submitted put_strided(queue& on, const strided_copy& what, wait_list after);

// Parts that are blocks themselves, packed in the order in which they lie on that side.
[[nodiscard]] std::unique_ptr<const parts> cut_strided(const strided_copy& what, side packed_as,
                                                       std::size_t most_bytes);

}  // namespace isthmus
