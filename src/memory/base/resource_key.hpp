// SPDX-License-Identifier: Apache-2.0
#pragma once
// Identifies the requests that a current resource serves: those of one kind, context and device.

#include <cstdint>

#include "memory/base/memory_resource.hpp"

namespace isthmus {

// Valid while the context lives, because another context may get its key afterwards.
struct ResourceKey {
  std::uintptr_t context_key;
  const Device* device;  // null for host kind, which belongs to no device
  UsmKind kind;

  [[nodiscard]] static ResourceKey of(UsmKind kind, const Queue& queue) noexcept {
    return of(kind, queue.context(), queue.device());
  }
  [[nodiscard]] static ResourceKey of(const MemoryResource& resource) noexcept {
    return of(resource.kind(), resource.context(), resource.device());
  }
  [[nodiscard]] bool operator==(const ResourceKey&) const noexcept = default;

 private:
  [[nodiscard]] static ResourceKey of(UsmKind kind, const Context& context,
                                      const Device& device) noexcept {
    return {context.key(), kind == ISTHMUS_KIND_HOST ? nullptr : &device, kind};
  }
};

}  // namespace isthmus
