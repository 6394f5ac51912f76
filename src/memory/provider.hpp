// SPDX-License-Identifier: Apache-2.0
#pragma once
// The provider: allocates from the driver, counts what it obtains, and refuses requests before the
// machine runs out of memory. Thread-safe.

#include <span>

#include "memory/driver_counts.hpp"
#include "memory/live_counts.hpp"
#include "memory/memory_resource.hpp"

namespace isthmus {

// Allocates from the driver. Also OUT_OF_MEMORY where the driver would overcommit host memory:
// drivers do that, and the kernel then kills the process on the first touch.
//
// `live` counts the allocations, here and below; null: nothing does.
[[nodiscard]] result<void*> provider_allocate(context& home, device& where,
                                              const allocation_request& request,
                                              live_counts* live = &process_live_counts());
// The same for a request that does not come from a pool: if the driver is out of memory, all pools
// of that memory return their free memory first. Calls no other resource, so the caller may hold
// locks of resources.
[[nodiscard]] result<void*> provider_allocate_or_trim(context& home, device& where,
                                                      const allocation_request& request);
void provider_deallocate(context& home, device& where, usm_kind kind, void* pointer,
                         std::size_t nbytes, live_counts* live = &process_live_counts()) noexcept;

// The same for chunks, at reserved addresses.
[[nodiscard]] result<void> provider_create(chunk_source& from, context& home, device& where,
                                           const allocation_request& request, void* at,
                                           live_counts* live);
void provider_destroy(chunk_source& from, device& where, usm_kind kind, void* at,
                      std::size_t nbytes, live_counts* live) noexcept;
// From here on one chunk counts as two.
void provider_divided(usm_kind kind, std::span<std::byte> front, std::span<std::byte> rest,
                      live_counts* live) noexcept;
void provider_moved(usm_kind kind, void* from, void* to, std::size_t nbytes,
                    live_counts* live) noexcept;

class provider final : public memory_resource {
 public:
  provider(context& home, device& where, usm_kind kind, bool write_combined = false)
      : memory_resource{home, where, kind}, write_combined_{write_combined} {}
  [[nodiscard]] result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       queue& on) override;
  result<void> deallocate(void* pointer, std::size_t nbytes, queue* behind) noexcept override;
  [[nodiscard]] bool is_drivers_own() const noexcept override { return true; }
  [[nodiscard]] memory_usage usage() noexcept override;

 private:
  const bool write_combined_;
  driver_counts counts_;
};

}  // namespace isthmus
