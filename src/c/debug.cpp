// SPDX-License-Identifier: Apache-2.0
// Detection of memory corruption: the debug resource, and checks of any resource.

#include "c/common.hpp"
#include "memory/resources/debug_resource.hpp"
#include "os/process.hpp"

using namespace isthmus;
using namespace isthmus::c;

isthmus_status_t isthmus_resource_debug(isthmus_resource_t* upstream, uint64_t kept_bytes,
                                        isthmus_resource_t** resource) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(upstream);
    ISTHMUS_NEEDS(resource);
    if (os::is_forked_child()) {
      return forked_child_error();
    }
    auto created = DebugResource::create(*object(upstream), kept_bytes);
    ISTHMUS_TRY(created);
    return return_handle(Result<Ref<MemoryResource>>{*std::move(created)}, resource);
  });
}

isthmus_status_t isthmus_resource_verify(isthmus_resource_t* resource) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(resource);
    return os::is_forked_child() ? Result<void>{forked_child_error()} : object(resource)->verify();
  });
}
