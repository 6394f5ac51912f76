#pragma once
// A resource that is to know of a free before the memory goes back.
//
// Memory whose last reference was dropped while work may still use it goes back later, on a thread
// of the library. What counts what callers have counts it out at once.

#include <cstddef>

#include "memory/memory_resource.hpp"

namespace isthmus {

class free_listener {
 public:
  // The caller has freed a block of this resource; `deallocate` follows, when nothing uses it any
  // more. May come several times for one free. Never fails: what cannot be noted is counted out by
  // `deallocate`.
  virtual void freed(const void* pointer, std::size_t nbytes) noexcept = 0;

 protected:
  ~free_listener() = default;
};

// Costs a cast: for memory that goes back late, which costs more by itself.
inline void notify_freed(memory_resource& from, const void* pointer, std::size_t nbytes) noexcept {
  if (auto* const listener = dynamic_cast<free_listener*>(&from)) {
    listener->freed(pointer, nbytes);
  }
}

}  // namespace isthmus
