// SPDX-License-Identifier: Apache-2.0
#pragma once
// A resource that the program implements as a table of functions. Checks the memory that these
// functions return. Thread-safe if these functions are.

#include "core/owner.hpp"
#include "memory/base/memory_resource.hpp"

namespace isthmus {

class CustomResource final : public MemoryResource {
 public:
  using Operations = isthmus_resource_operations_t;

  CustomResource(Context& context, Device& device, UsmKind kind, const Operations& operations,
                 Owner owner)
      : MemoryResource{context, device, kind}, operations_{operations}, owner_{std::move(owner)} {}

  [[nodiscard]] bool suballocates() const noexcept override { return true; }
  [[nodiscard]] Result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       Queue& queue) override;
  Result<void> deallocate(void* pointer, std::size_t nbytes, Queue* after) noexcept override;
  [[nodiscard]] MemoryUsage usage() noexcept override;
  std::size_t trim(std::size_t keep) noexcept override;

 private:
  [[nodiscard]] Result<void> check(const void* pointer, const AllocationRequest& request) noexcept;
  [[nodiscard]] Result<void> check_location(const PointerFacts& facts, const void* pointer,
                                            const AllocationRequest& request);

  const Operations operations_;
  const Owner owner_;
};

}  // namespace isthmus
