// SPDX-License-Identifier: Apache-2.0
#include "memory/records/allocation_creation.hpp"

#include <utility>

#include "memory/base/deferred_release.hpp"
#include "memory/base/provider.hpp"
#include "memory/pool/pool.hpp"
#include "memory/records/allocation_lookup.hpp"

namespace isthmus {
namespace {

Result<void*> allocate_memory(Queue& queue, const AllocationRequest& request,
                              MemoryResource* resource) {
  auto* const pool = resource != nullptr ? resource->as_pool() : nullptr;
  if (pool != nullptr) {
    auto* const block = pool->allocate_fast(request.nbytes, request.alignment, &queue);
    return block != nullptr ? block : resource->allocate(request.nbytes, request.alignment, queue);
  }
  if (resource == nullptr) {
    if (auto error = queue.check_allocation()) {
      return error;
    }
  }
  release_large_on_demand();
  if (resource != nullptr) {
    return resource->allocate(request.nbytes, request.alignment, queue);
  }
  return provider_allocate_or_trim(queue.context(), queue.device(), request);
}

// Records memory of a resource that may be built on others. Its kind and device are those of the
// resource that has it.
Result<Ref<Allocation>> record_block_of(MemoryResource& resource, Queue& queue,
                                        Allocation::Facts facts) {
  auto& source = resource.resource_of(facts.base, facts.nbytes);
  facts.kind = source.kind();
  Ref<Allocation> outer;
  if (source.suballocates()) {
    auto found = allocation_at(facts.base);
    ISTHMUS_TRY(found);
    outer = *std::move(found);
  }
  return Allocation::record_new(queue, facts,
                                {&resource, &source.device(), source.as_pool(), outer.get()});
}

Result<Ref<Allocation>> record(Queue& queue, const Allocation::Facts& facts,
                               MemoryResource* resource) noexcept try {
  if (resource == nullptr) {
    return Allocation::record_new(queue, facts, {});
  }
  if (auto* const pool = resource->as_pool()) {
    return Allocation::record_new(queue, facts, {resource, &resource->device(), pool});
  }
  return record_block_of(*resource, queue, facts);
} catch (const std::bad_alloc&) {
  return Error::no_memory();
}

}  // namespace

Result<Ref<Allocation>> create_allocation(Queue& queue, const AllocationRequest& request,
                                          MemoryResource* resource) {
  auto pointer = allocate_memory(queue, request, resource);
  ISTHMUS_TRY(pointer);
  return take_ownership(queue, {*pointer, request.nbytes, request.alignment, request.kind},
                        resource);
}

Result<Ref<Allocation>> take_ownership(Queue& queue, const Allocation::Facts& facts,
                                       MemoryResource* resource) {
  auto result = record(queue, facts, resource);
  if (!result) {
    const bool is_ordered = resource != nullptr && resource->is_pool();
    Allocation::return_memory(facts, queue, resource,
                              is_ordered || !queue.is_exported() ? &queue : nullptr);
  }
  return result;
}

}  // namespace isthmus
