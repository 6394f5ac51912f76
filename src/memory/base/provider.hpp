// SPDX-License-Identifier: Apache-2.0
#pragma once
// The provider: allocates from the driver, counts the memory that it obtains, and refuses requests
// before the machine runs out of memory. Thread-safe.

#include <span>

#include "memory/base/driver_counts.hpp"
#include "memory/base/live_counts.hpp"
#include "memory/base/memory_resource.hpp"

namespace isthmus {

// Allocates from the driver. Returns OUT_OF_MEMORY also where the driver would overcommit host
// memory: the kernel would then kill the process on the first touch.
//
// `live` counts the allocations, here and below; null: they are not counted.
[[nodiscard]] Result<void*> provider_allocate(Context& context, Device& device,
                                              const AllocationRequest& request,
                                              LiveCounts* live = &process_live_counts());
// As `provider_allocate`, for a request that does not come from a pool. If the driver is out of
// memory, all pools of that memory release their free memory, and the request is retried. Calls no
// other resource, so the caller may hold locks of resources.
[[nodiscard]] Result<void*> provider_allocate_or_trim(Context& context, Device& device,
                                                      const AllocationRequest& request);
void provider_deallocate(Context& context, Device& device, UsmKind kind, void* pointer,
                         std::size_t nbytes, LiveCounts* live = &process_live_counts()) noexcept;
// As `provider_deallocate`, for memory from `provider_allocate_or_trim`: emits `free`, as that
// function emits `allocate`.
void provider_free(Context& context, Device& device, UsmKind kind, void* pointer,
                   std::size_t nbytes) noexcept;

// As `provider_allocate` and `provider_deallocate`, for chunks at reserved addresses.
[[nodiscard]] Result<void> provider_create(ChunkSource& source, Context& context, Device& device,
                                           const AllocationRequest& request, void* at,
                                           LiveCounts* live);
void provider_destroy(ChunkSource& source, Device& device, UsmKind kind, void* at,
                      std::size_t nbytes, LiveCounts* live) noexcept;
// Counts one chunk as two from now on.
void provider_divided(UsmKind kind, std::span<std::byte> front, std::span<std::byte> rest,
                      LiveCounts* live) noexcept;
void provider_moved(UsmKind kind, void* source, void* destination, std::size_t nbytes,
                    LiveCounts* live) noexcept;

class Provider final : public MemoryResource {
 public:
  Provider(Context& context, Device& device, UsmKind kind, bool write_combined = false)
      : MemoryResource{context, device, kind}, write_combined_{write_combined} {}
  [[nodiscard]] Result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       Queue& queue) override;
  Result<void> deallocate(void* pointer, std::size_t nbytes, Queue* queue) noexcept override;
  [[nodiscard]] bool is_driver_backed() const noexcept override { return true; }
  [[nodiscard]] MemoryUsage usage() noexcept override;

 private:
  const bool write_combined_;
  DriverCounts counts_;
};

}  // namespace isthmus
