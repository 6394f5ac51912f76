// SPDX-License-Identifier: Apache-2.0
#include "memory/raw.hpp"

#include "memory/cut_areas.hpp"
#include "memory/deferred_release.hpp"
#include "memory/oom_callbacks.hpp"
#include "memory/other_pools.hpp"
#include "memory/page_map.hpp"
#include "memory/registry.hpp"

namespace isthmus {
namespace {

// Whether the memory has no record and is deallocated directly.
bool goes_back_bare(MemoryResource& resource, const void* pointer, std::size_t nbytes) noexcept {
  return resource.orders_frees() || resource.giver_of(pointer, nbytes).orders_frees();
}

Error is_in_use(const void* pointer) {
  return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
              "{} is in use by a buffer, or by a resource that is built on this one: free it there",
              pointer);
}

// Whether the block that begins at `pointer`, which a caller wants to free, is not held by a bare
// pointer: a resource above sub-allocates it, or it has a record, for example that of a buffer.
bool is_used_above(MemoryResource& resource, const void* pointer, std::size_t nbytes) noexcept {
  auto& giver = resource.giver_of(pointer, nbytes);
  const auto* const in = process_page_map.find(pointer);
  auto& areas = process_cut_areas();
  if (giver.as_pool() != nullptr) {
    return in != nullptr && areas.look(pointer, true).has_value();
  }
  switch (areas.place_of(pointer, giver, in != nullptr)) {
    case CutAreas::Place::outside: return false;
    case CutAreas::Place::below_another: return true;
    case CutAreas::Place::innermost: break;
  }
  const auto found = areas.look(pointer, in != nullptr);
  const auto record = process_registry().innermost_part(pointer);
  return found && record && found->block.holds(record->known.what.base) &&
         record->known.what.nbytes <= found->block.nbytes;
}

}  // namespace

Result<void*> allocate_raw(MemoryResource& resource, std::size_t nbytes, std::size_t alignment,
                           Queue& queue) {
  release_much_on_demand();
  const auto refusals = driver_refusals;
  const auto ask = [&] { return resource.allocate(nbytes, alignment, queue); };
  auto memory = ask();
  if (is_short(memory)) {
    memory = with_all_pools({resource.device(), resource.kind(), nbytes, resource.as_pool()},
                            refusals, ask, std::move(memory));
  }
  if (!memory && reclaimed_for(memory.failure(), refusals, resource.device(),
                               {resource.kind(), nbytes, alignment}, &resource)) {
    memory = ask();
  }
  if (!memory || goes_back_bare(resource, *memory, nbytes)) {
    return memory;
  }
  auto made =
      Allocation::take_over(queue, {*memory, nbytes, alignment, resource.kind()}, &resource);
  ISTHMUS_TRY(made);
  (*made)->hold_by_pointer();
  return memory;
}

Result<void> deallocate_raw(MemoryResource& resource, void* pointer, std::size_t nbytes,
                            Queue* behind) {
  if (goes_back_bare(resource, pointer, nbytes)) {
    if (Allocation::any_within() && is_used_above(resource, pointer, nbytes)) {
      return is_in_use(pointer);
    }
    return resource.deallocate(pointer, nbytes, behind);
  }
  const auto known = process_registry().find(pointer, resource);
  if (!known) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "pointer {} was not allocated by this resource, or was freed before", pointer);
  }
  return take_back_recorded(*known, pointer, behind);
}

Result<void> take_back_recorded(Allocation& known, const void* pointer, Queue* behind) noexcept {
  const auto* const base = known.what().base;
  if (base != pointer) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "{} lies inside the allocation at {}: free the pointer that was allocated", pointer,
                base);
  }
  if (!known.drop_pointer(behind)) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "{} was freed before, or belongs to a buffer: free the buffer", pointer);
  }
  return {};
}

}  // namespace isthmus
