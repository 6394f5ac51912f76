// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reports copies and fills to observers (recorder/observers.hpp). Thread-safe.

#include "backend/queue.hpp"
#include "recorder/observers.hpp"
#include "transfer/endpoint.hpp"

namespace isthmus {

// Call this once the operation has been submitted or executed. `queue` may be null.
inline void observe_copy(const Queue* queue, const Endpoint& destination, const Endpoint& source,
                         std::size_t nbytes) noexcept {
  observe(MemoryEventKind::copy, [&] {
    return MemoryEvent{.kind = MemoryEventKind::copy,
                       .address = destination.pointer,
                       .nbytes = nbytes,
                       .queue = queue != nullptr ? queue->serial() : 0,
                       .source = source.pointer};
  });
}
inline void observe_fill(const Queue* queue, const Endpoint& destination,
                         std::size_t nbytes) noexcept {
  observe(MemoryEventKind::fill, [&] {
    return MemoryEvent{.kind = MemoryEventKind::fill,
                       .address = destination.pointer,
                       .nbytes = nbytes,
                       .queue = queue != nullptr ? queue->serial() : 0};
  });
}

}  // namespace isthmus
