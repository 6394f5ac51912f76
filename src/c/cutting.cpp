// SPDX-License-Identifier: Apache-2.0
// Memory resources that sub-allocate the blocks of their upstream.

#include <algorithm>

#include "c/common.hpp"
#include "core/sizes.hpp"
#include "memory/resources/arena_resource.hpp"
#include "memory/resources/fixed_size_resource.hpp"
#include "memory/resources/monotonic_resource.hpp"

using namespace isthmus;
using namespace isthmus::c;

namespace {

template <class Resource, class... Args>
Result<void> return_suballocator(isthmus_resource_t* upstream, isthmus_resource_t** out,
                                 Args&&... args) {
  ISTHMUS_TRY(SuballocatingResource::check_upstream(*object(upstream)));
  auto created = make_ref<Resource>(*object(upstream), std::forward<Args>(args)...);
  return return_handle(Result<Ref<MemoryResource>>{std::move(created)}, out);
}

}  // namespace

isthmus_status_t isthmus_resource_monotonic(isthmus_resource_t* upstream, size_t first_bytes,
                                            isthmus_resource_t** resource) noexcept {
  return driver_entry(ISTHMUS_NEEDS(upstream, resource), [&]() -> Result<void> {
    return return_suballocator<MonotonicResource>(
        upstream, resource, first_bytes != 0 ? first_bytes : MonotonicResource::k_default_bytes);
  });
}

isthmus_status_t isthmus_monotonic_release(isthmus_resource_t* resource) noexcept {
  return driver_entry(ISTHMUS_NEEDS(resource), [&]() -> Result<void> {
    auto* monotonic = dynamic_cast<MonotonicResource*>(object(resource));
    if (monotonic == nullptr) {
      return fail(
          ISTHMUS_ERROR_INVALID_ARGUMENT,
          "this resource is not monotonic: only a monotonic resource frees all its blocks at once");
    }
    monotonic->release_all();
    return {};
  });
}

isthmus_status_t isthmus_resource_fixed_size(isthmus_resource_t* upstream, size_t block_bytes,
                                             size_t blocks,
                                             isthmus_resource_t** resource) noexcept {
  return driver_entry(ISTHMUS_NEEDS(upstream, resource), [&]() -> Result<void> {
    if (block_bytes == 0) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                  "the block size cannot be 0 bytes: use at least 1");
    }
    using Resource = FixedSizeResource;
    const auto default_blocks =
        std::max(Resource::k_default_bytes / block_bytes, Resource::k_min_blocks);
    const auto blocks_per_slab = blocks != 0 ? blocks : default_blocks;
    // Leaves space for rounding a block up to the device's alignment.
    constexpr auto k_max_bytes = SIZE_MAX / 2;
    const auto alignment = object(upstream)->device().properties().base_alignment;
    if (block_bytes > k_max_bytes - alignment ||
        block_bytes + alignment > k_max_bytes / blocks_per_slab) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                  "{} blocks of {} exceed the address space: use fewer or smaller blocks",
                  blocks_per_slab, describe_bytes(block_bytes));
    }
    return return_suballocator<Resource>(upstream, resource, block_bytes, blocks_per_slab);
  });
}

isthmus_status_t isthmus_resource_arena(isthmus_resource_t* upstream, uint64_t limit_bytes,
                                        isthmus_resource_t** resource) noexcept {
  return driver_entry(ISTHMUS_NEEDS(upstream, resource), [&]() -> Result<void> {
    return return_suballocator<ArenaResource>(upstream, resource,
                                              limit_bytes != 0 ? limit_bytes : UINT64_MAX);
  });
}
