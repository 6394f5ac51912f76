// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is known about a pointer: by the registry and the pools, else by the driver. Thread-safe.

#include "memory/memory_resource.hpp"

namespace isthmus {

// As seen from `home`: UNKNOWN for memory of another context. Any pointer into the memory will do.
[[nodiscard]] pointer_facts facts_of(context& home, const void* pointer);

// The request that live memory was allocated for. Zeros if that is not known: for a block of a
// slab, and for memory of another library.
struct request_facts {
  std::size_t nbytes = 0;
  std::uintptr_t queue_key = 0;
};

// As `facts_of`, with the state of the memory. Context and resource are borrowed from its owner.
struct pointer_record {
  pointer_facts what;
  context* home = nullptr;
  memory_resource* from = nullptr;  // null: unknown, or the driver
  isthmus_memory_state_t state = ISTHMUS_MEMORY_UNKNOWN;
  request_facts request;
};
// `asked` null: as seen from any context that the registry knows.
[[nodiscard]] pointer_record record_of(context* asked, const void* pointer);

// References to context and resource; null where the registry does not know them.
struct pointer_origin {
  ref<context> home;
  ref<memory_resource> from;
};
[[nodiscard]] pointer_origin origin_of(const void* pointer);

}  // namespace isthmus
