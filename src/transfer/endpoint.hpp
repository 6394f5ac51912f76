// SPDX-License-Identifier: Apache-2.0
#pragma once
// The source or destination of a transfer: plain host memory of the caller, or part of an
// allocation. Not thread-safe.

#include <cstddef>

#include "backend/queue.hpp"
#include "core/expects.hpp"
#include "core/range_set.hpp"
#include "core/sizes.hpp"
#include "memory/records/allocation.hpp"

namespace isthmus {

struct Endpoint {
  std::byte* pointer = nullptr;
  Ref<Allocation> memory;  // null: plain host memory
  Queue* preferred = nullptr;

  [[nodiscard]] bool host_can_touch() const noexcept { return !memory || memory->host_can_touch(); }
  // Whether copies that the library executes on the host can access the endpoint.
  [[nodiscard]] bool host_can_copy() const noexcept {
    return host_can_touch() || memory->device().keeps_memory_on_host();
  }
  [[nodiscard]] bool in_context_of(const Queue& queue) const noexcept {
    return memory && memory->context().is_same_as(queue.context());
  }
  // Whether operations on `queue` may access the endpoint: the host can access it, or it belongs to
  // the queue's context and device.
  [[nodiscard]] bool is_reachable_by(const Queue& queue) const noexcept {
    return host_can_touch() || (in_context_of(queue) && &memory->device() == &queue.device());
  }
  // Returns [pointer, pointer + nbytes) as offsets in the allocation.
  [[nodiscard]] ByteRange range(std::size_t nbytes) const noexcept {
    ISTHMUS_EXPECTS(memory);
    const auto begin = address(pointer) - address(memory->start_of_uses());
    return {begin, begin + nbytes};
  }
};

}  // namespace isthmus
