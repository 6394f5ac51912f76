// SPDX-License-Identifier: Apache-2.0
#pragma once
// An endpoint of a transfer: plain host memory of the caller's, or part of an allocation.

#include <vector>

#include "core/sizes.hpp"
#include "memory/allocation.hpp"

namespace isthmus {

struct Endpoint {
  std::byte* pointer = nullptr;
  Ref<Allocation> memory;  // null: plain host memory
  Queue* preferred = nullptr;

  [[nodiscard]] bool host_can_touch() const noexcept { return !memory || memory->host_can_touch(); }
  // Whether the library's own copies on the host can access it.
  [[nodiscard]] bool host_can_copy() const noexcept {
    return host_can_touch() || memory->device().keeps_memory_on_host();
  }
  [[nodiscard]] bool in_context_of(const Queue& queue) const noexcept;
  // Whether operations of that queue may access it: it is accessible to the host, or belongs to the
  // queue's context and device.
  [[nodiscard]] bool is_reachable_by(const Queue& queue) const noexcept;
  // [pointer, pointer + nbytes) as a range of its allocation.
  [[nodiscard]] ByteRange range(std::size_t nbytes) const noexcept;
};

struct TransferUse {
  Allocation* memory = nullptr;
  Use use;
};

// What an operation waits for, and what must live until it has completed.
struct TransferOptions {
  std::vector<Ref<Event>> after;
  std::vector<Owner> owners;
  bool blocking = true;
  // Whether it depends on copies that are to fill what it reads (memory/content_list.hpp): it then
  // fails if they do. Otherwise it is only ordered after them.
  bool reads_contents = true;
};

}  // namespace isthmus
