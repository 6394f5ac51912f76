// SPDX-License-Identifier: Apache-2.0
#include "memory/records/bare_pointers.hpp"

#include "core/expects.hpp"
#include "memory/base/deferred_release.hpp"
#include "memory/base/oom_recovery.hpp"
#include "memory/pool/page_map.hpp"
#include "memory/records/allocation_creation.hpp"
#include "memory/records/cut_areas.hpp"
#include "memory/records/registry.hpp"

namespace isthmus {
namespace {

// Whether the memory has no record and is deallocated directly.
bool has_no_record(MemoryResource& resource, const void* pointer, std::size_t nbytes) noexcept {
  return resource.orders_frees() || resource.resource_of(pointer, nbytes).orders_frees();
}

Error in_use_error(const void* pointer) {
  return fail(
      ISTHMUS_ERROR_INVALID_ARGUMENT,
      "{} is in use by a buffer, or by a resource that is built on this one: free it through "
      "that buffer or resource",
      pointer);
}

// Whether a block that a caller wants to free is in use other than by the bare pointer: a resource
// above sub-allocates it, or it has a record, for example that of a buffer.
bool is_used_above(MemoryResource& resource, const void* pointer, std::size_t nbytes) noexcept {
  auto& source = resource.resource_of(pointer, nbytes);
  const auto* const page = process_page_map.find(pointer);
  auto& areas = process_cut_areas();
  if (source.is_pool()) {
    return page != nullptr && areas.find(pointer, true).has_value();
  }
  switch (areas.nesting_of(pointer, source, page != nullptr)) {
    case CutAreas::Nesting::outside: return false;
    case CutAreas::Nesting::enclosing: return true;
    case CutAreas::Nesting::innermost: break;
  }
  const auto found = areas.find(pointer, page != nullptr);
  const auto record = process_registry().innermost_part(pointer);
  return found && record && found->block.contains(record->known.facts.base) &&
         record->known.facts.nbytes <= found->block.nbytes;
}

}  // namespace

Result<void*> allocate_raw(MemoryResource& resource, std::size_t nbytes, std::size_t alignment,
                           Queue& queue) {
  ISTHMUS_EXPECTS(nbytes != 0);
  release_large_on_demand();
  const AllocationRequest request{resource.kind(), nbytes, alignment};
  OomRecovery recovery{resource.device(), request, &resource};
  auto memory = recovery.allocate([&] { return resource.allocate(nbytes, alignment, queue); });
  if (!memory || has_no_record(resource, *memory, nbytes)) {
    return memory;
  }
  auto allocation = take_ownership(queue, {*memory, nbytes, alignment, resource.kind()}, &resource);
  ISTHMUS_TRY(allocation);
  (*allocation)->hold_by_pointer();
  return memory;
}

Result<void> deallocate_raw(MemoryResource& resource, void* pointer, std::size_t nbytes,
                            Queue* queue) {
  if (has_no_record(resource, pointer, nbytes)) {
    if (Allocation::any_nested() && is_used_above(resource, pointer, nbytes)) {
      return in_use_error(pointer);
    }
    return resource.deallocate(pointer, nbytes, queue);
  }
  auto record = process_registry().find(pointer, resource);
  if (!record) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "pointer {} was not allocated by this resource, or was freed before", pointer);
  }
  return allocation_of(std::move(record))->deallocate(pointer, queue);
}

}  // namespace isthmus
