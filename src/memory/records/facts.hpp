// SPDX-License-Identifier: Apache-2.0
#pragma once
// Looks up the memory at a pointer: in the registry and the pools, else by querying the driver.
// Thread-safe.

#include "memory/base/memory_resource.hpp"

namespace isthmus {

// The facts of the memory that contains `pointer`. The kind is UNKNOWN for memory of a context
// other than `context`.
[[nodiscard]] PointerFacts facts_of(Context& context, const void* pointer);

// The size and queue of the request that allocated live memory. Zeros if unknown: for a block of a
// slab, and for memory of another library.
struct RequestFacts {
  std::size_t nbytes = 0;
  std::uintptr_t queue_key = 0;
};

// The facts of `facts_of`, and the state of the memory. Context and resource are borrowed from the
// owner of the memory.
struct PointerRecord {
  PointerFacts facts;
  Context* context = nullptr;
  MemoryResource* resource = nullptr;  // null: unknown, or the driver
  isthmus_memory_state_t state = ISTHMUS_MEMORY_UNKNOWN;
  RequestFacts request;
};
// If `context` is null, memory of any context is found, and no driver is queried.
[[nodiscard]] PointerRecord record_of(Context* context, const void* pointer);

// References to the context and resource of memory; null if unknown.
struct PointerOrigin {
  Ref<Context> context;
  Ref<MemoryResource> resource;
};
[[nodiscard]] PointerOrigin origin_of(const void* pointer);

}  // namespace isthmus
