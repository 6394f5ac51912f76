#pragma once
// What is known of a pointer: by our registry, else by the driver.

#include "backend/context.hpp"

namespace isthmus {

// Seen from `home`: UNKNOWN for memory of another context. An inner pointer is as good as its base.
[[nodiscard]] pointer_facts facts_of(context& home, const void* pointer);
// Seen from any context that the registry knows.
[[nodiscard]] pointer_facts facts_of(const void* pointer);

// How live memory was asked for; zeros for what is not known: a block of a slab, memory of others.
struct request_facts {
  std::size_t nbytes = 0;
  std::uintptr_t queue_key = 0;
};
[[nodiscard]] request_facts request_of(const void* pointer);

}  // namespace isthmus
