// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is known about a pointer: by the registry and the pools, else by the driver. Thread-safe.

#include "memory/memory_resource.hpp"

namespace isthmus {

// As seen from `context`: UNKNOWN for memory of another context. Any pointer into the memory will
// do.
[[nodiscard]] PointerFacts facts_of(Context& context, const void* pointer);

// The request that live memory was allocated for. Zeros if that is not known: for a block of a
// slab, and for memory of another library.
struct RequestFacts {
  std::size_t nbytes = 0;
  std::uintptr_t queue_key = 0;
};

// As `facts_of`, with the state of the memory. Context and resource are borrowed from its owner.
struct PointerRecord {
  PointerFacts facts;
  Context* context = nullptr;
  MemoryResource* resource = nullptr;  // null: unknown, or the driver
  isthmus_memory_state_t state = ISTHMUS_MEMORY_UNKNOWN;
  RequestFacts request;
};
// `context` null: as seen from any context that the registry knows.
[[nodiscard]] PointerRecord record_of(Context* context, const void* pointer);

// References to context and resource; null where the registry does not know them.
struct PointerOrigin {
  Ref<Context> context;
  Ref<MemoryResource> resource;
};
[[nodiscard]] PointerOrigin origin_of(const void* pointer);

}  // namespace isthmus
