// SPDX-License-Identifier: Apache-2.0
#include "memory/records/allocation_creation.hpp"

#include <utility>

#include "memory/base/deferred_release.hpp"
#include "memory/base/provider.hpp"
#include "memory/pool/pool.hpp"
#include "memory/records/pooled.hpp"

namespace isthmus {
namespace {

Result<void*> allocate_memory(Queue& queue, const AllocationRequest& request,
                              MemoryResource* resource) {
  if (resource != nullptr) {
    auto* const pool = resource->as_pool();
    auto* const block =
        pool != nullptr ? pool->allocate_fast(request.nbytes, request.alignment, &queue) : nullptr;
    if (pool == nullptr) {
      release_large_on_demand();
    }
    return block != nullptr ? block : resource->allocate(request.nbytes, request.alignment, queue);
  }
  if (auto error = queue.check_allocation()) {
    return error;
  }
  release_large_on_demand();
  return provider_allocate_or_trim(queue.context(), queue.device(), request);
}

// Determines where the memory lies, and its kind: that of the resource which has it.
Result<Allocation::Placement> place(Allocation::Facts& facts, MemoryResource* resource) {
  Allocation::Placement placement{.resource = resource};
  if (resource == nullptr) {
    return placement;
  }
  placement.pool = resource->as_pool();
  auto& source =
      placement.pool != nullptr ? *resource : resource->resource_of(facts.base, facts.nbytes);
  if (placement.pool == nullptr) {
    facts.kind = source.kind();
    placement.pool = source.as_pool();
    if (source.suballocates()) {
      auto outer = allocation_at(facts.base);
      ISTHMUS_TRY(outer);
      placement.outer = *std::move(outer);
    }
  }
  placement.device = &source.device();
  return placement;
}

Result<Ref<Allocation>> record(Queue& queue, Allocation::Facts facts,
                               MemoryResource* resource) noexcept try {
  if (facts.alignment == 0) {
    facts.alignment = queue.device().properties().base_alignment;
  }
  auto placement = place(facts, resource);
  ISTHMUS_TRY(placement);
  return Allocation::record_new(queue, facts, *std::move(placement));
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
    const bool is_ordered = resource != nullptr && resource->as_pool() != nullptr;
    Allocation::return_memory(facts, queue, resource,
                              is_ordered || !queue.is_exported() ? &queue : nullptr);
  }
  return result;
}

}  // namespace isthmus
