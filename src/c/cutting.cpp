// SPDX-License-Identifier: Apache-2.0
// Memory resources that sub-allocate the blocks of their upstream.

#include <algorithm>

#include "c/common.hpp"
#include "core/sizes.hpp"
#include "memory/adaptors/arena_resource.hpp"
#include "memory/adaptors/fixed_size_resource.hpp"
#include "memory/adaptors/monotonic_resource.hpp"
#include "os/process.hpp"

using namespace isthmus;
using namespace isthmus::c;

namespace {

template <class Resource, class... Args>
Result<void> give_cutting(isthmus_resource_t* upstream, isthmus_resource_t** out, Args&&... args) {
  if (os::is_forked_child()) {
    return refuse_child();
  }
  ISTHMUS_TRY(CuttingResource::check_upstream(*object(upstream)));
  auto made = make_ref<Resource>(*object(upstream), std::forward<Args>(args)...);
  return give(Result<Ref<MemoryResource>>{std::move(made)}, out);
}

}  // namespace

isthmus_status_t isthmus_resource_monotonic(isthmus_resource_t* upstream, size_t first_bytes,
                                            isthmus_resource_t** resource) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(upstream);
    ISTHMUS_NEEDS(resource);
    return give_cutting<MonotonicResource>(
        upstream, resource, first_bytes != 0 ? first_bytes : MonotonicResource::k_usual_bytes);
  });
}

isthmus_status_t isthmus_monotonic_release(isthmus_resource_t* resource) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(resource);
    if (os::is_forked_child()) {
      return refuse_child();
    }
    auto* of = dynamic_cast<MonotonicResource*>(object(resource));
    if (of == nullptr) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                  "this resource is not monotonic: create one with isthmus_resource_monotonic");
    }
    of->release_all();
    return {};
  });
}

isthmus_status_t isthmus_resource_fixed_size(isthmus_resource_t* upstream, size_t block_bytes,
                                             size_t blocks,
                                             isthmus_resource_t** resource) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(upstream);
    ISTHMUS_NEEDS(resource);
    if (block_bytes == 0) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "the block size cannot be 0 bytes");
    }
    using Made = FixedSizeResource;
    const auto usual = std::max(Made::k_usual_bytes / block_bytes, Made::k_least_blocks);
    const auto in_slab = blocks != 0 ? blocks : usual;
    // Leaves room for rounding a block up to the device's alignment.
    constexpr auto k_most = SIZE_MAX / 2;
    const auto unit = object(upstream)->device().properties().base_alignment;
    if (block_bytes > k_most - unit || block_bytes + unit > k_most / in_slab) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "{} blocks of {} exceed the address space",
                  in_slab, describe_bytes(block_bytes));
    }
    return give_cutting<Made>(upstream, resource, block_bytes, in_slab);
  });
}

isthmus_status_t isthmus_resource_arena(isthmus_resource_t* upstream, uint64_t limit_bytes,
                                        isthmus_resource_t** resource) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(upstream);
    ISTHMUS_NEEDS(resource);
    return give_cutting<ArenaResource>(upstream, resource,
                                       limit_bytes != 0 ? limit_bytes : UINT64_MAX);
  });
}
