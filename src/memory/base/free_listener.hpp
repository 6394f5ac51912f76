// SPDX-License-Identifier: Apache-2.0
#pragma once
// The interface of resources that are notified of a free before the memory is returned to them.
//
// If work may still use memory when its last reference is dropped, a library thread returns the
// memory later. Resources that count allocated memory implement this interface to subtract the
// memory at once.

#include <cstddef>

#include "memory/base/memory_resource.hpp"

namespace isthmus {

class FreeListener {
 public:
  // The caller has freed a block of this resource; `deallocate` follows after its last use has
  // completed. May be called several times for one free, on any thread. Never fails: a free that
  // cannot be counted here is counted by `deallocate`.
  virtual void freed(const void* pointer, std::size_t nbytes) noexcept = 0;

 protected:
  ~FreeListener() = default;
};

// Costs a dynamic_cast. It is called only for memory whose release is deferred, which costs more
// than that.
inline void notify_freed(MemoryResource& resource, const void* pointer,
                         std::size_t nbytes) noexcept {
  if (auto* const listener = dynamic_cast<FreeListener*>(&resource)) {
    listener->freed(pointer, nbytes);
  }
}

}  // namespace isthmus
