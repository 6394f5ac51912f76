// SPDX-License-Identifier: Apache-2.0
#pragma once
// A resource that the caller implements as a table of functions. The memory that they return is
// checked.

#include "core/owner.hpp"
#include "memory/memory_resource.hpp"

namespace isthmus {

class CustomResource final : public MemoryResource {
 public:
  using Operations = isthmus_resource_operations_t;

  CustomResource(Context& context, Device& device, UsmKind kind, const Operations& operations,
                 Owner keep)
      : MemoryResource{context, device, kind}, how_{operations}, keep_{std::move(keep)} {}

  [[nodiscard]] bool cuts() const noexcept override { return true; }
  [[nodiscard]] Result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       Queue& queue) override;
  Result<void> deallocate(void* pointer, std::size_t nbytes, Queue* behind) noexcept override;
  [[nodiscard]] MemoryUsage usage() noexcept override;
  std::size_t trim(std::size_t keep) noexcept override;

 private:
  [[nodiscard]] Result<void> check(const void* pointer, const AllocationRequest& asked) noexcept;
  [[nodiscard]] Result<void> check_place(const PointerFacts& known, const void* pointer,
                                         const AllocationRequest& asked);

  const Operations how_;
  const Owner keep_;
};

}  // namespace isthmus
