#pragma once
// What is known of a pointer: by our registry, else by the driver.

#include "memory/memory_resource.hpp"

namespace isthmus {

// Seen from `home`: UNKNOWN for memory of another context. An inner pointer is as good as its base.
[[nodiscard]] pointer_facts facts_of(context& home, const void* pointer);

// How live memory was asked for; zeros for what is not known: a block of a slab, memory of others.
struct request_facts {
  std::size_t nbytes = 0;
  std::uintptr_t queue_key = 0;
};

// The same, and what becomes of the memory. Context and resource are borrowed from whoever has it.
struct pointer_record {
  pointer_facts what;
  context* home = nullptr;
  memory_resource* from = nullptr;  // null: not known, or the driver
  isthmus_memory_state_t state = ISTHMUS_MEMORY_UNKNOWN;
  request_facts request;
};
// `asked` null: seen from any context that the registry knows.
[[nodiscard]] pointer_record record_of(context* asked, const void* pointer);

// References to these two; null where the registry does not know them.
struct pointer_origin {
  ref<context> home;
  ref<memory_resource> from;
};
[[nodiscard]] pointer_origin origin_of(const void* pointer);

}  // namespace isthmus
