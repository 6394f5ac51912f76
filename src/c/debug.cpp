// SPDX-License-Identifier: Apache-2.0
// Detection of memory corruption: the debug resource, and checks of any resource.

#include "c/common.hpp"
#include "memory/resources/debug_resource.hpp"

using namespace isthmus;
using namespace isthmus::c;

isthmus_status_t isthmus_resource_debug(isthmus_resource_t* upstream, uint64_t kept_bytes,
                                        isthmus_resource_t** resource) noexcept {
  return driver_entry(ISTHMUS_NEEDS(upstream, resource), [&]() -> Result<void> {
    auto created = DebugResource::create(*object(upstream), kept_bytes);
    ISTHMUS_TRY(created);
    return return_handle(Result<Ref<MemoryResource>>{*std::move(created)}, resource);
  });
}

isthmus_status_t isthmus_resource_verify(isthmus_resource_t* resource) noexcept {
  return driver_entry(ISTHMUS_NEEDS(resource),
                      [&]() -> Result<void> { return object(resource)->verify(); });
}
