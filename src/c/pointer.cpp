// SPDX-License-Identifier: Apache-2.0
// Queries of the allocation records of pointers, and records of external work on their memory.

#include <cstddef>

#include "c/common.hpp"
#include "memory/records/allocation_lookup.hpp"
#include "memory/records/facts.hpp"
#include "memory/records/innermost.hpp"
#include "memory/resources/tracking_resource.hpp"
#include "os/process.hpp"

using namespace isthmus;
using namespace isthmus::c;

namespace {

// Size of the first published version of the structure. Programs compiled with it pass this size.
constexpr auto k_first_info_size = offsetof(isthmus_pointer_info_t, requested_bytes);

void write_facts(const PointerFacts& facts, isthmus_pointer_info_t& info) noexcept {
  info.kind = facts.kind;
  info.base = facts.base;
  info.nbytes = facts.nbytes;
  info.device = facts.device == nullptr ? nullptr : handle(facts.device);
}

// Writes `requested_bytes` and `queue_key` if the caller's structure has them.
void write_request(const RequestFacts& request, isthmus_pointer_info_t& info) noexcept {
  if (info.struct_size >= offsetof(isthmus_pointer_info_t, queue_key)) {
    info.requested_bytes = request.nbytes;
  }
  if (info.struct_size >= offsetof(isthmus_pointer_info_t, context)) {
    info.queue_key = request.queue_key;
  }
}

void write_origin(Context* context, MemoryResource* resource, isthmus_memory_state_t state,
                  isthmus_pointer_info_t& info) noexcept {
  if (info.struct_size >= sizeof info) {
    info.context = handle(context);
    info.resource = handle(resource);
    info.state = state;
  }
}

// For callers whose structure has all fields: only stores, without branches.
void write_block(const BareBlock& block, isthmus_pointer_info_t& info) noexcept {
  const auto& common = *block.common;
  info = {info.struct_size,
          common.kind.load(k_relaxed),
          block.start,
          block.nbytes,
          handle(common.device.load(k_relaxed)),
          0,
          0,
          handle(common.context.load(k_relaxed)),
          handle(common.resource.load(k_relaxed)),
          ISTHMUS_MEMORY_LIVE};
}

// Returns the request of the block, from the allocation trackers if the block does not record it.
RequestFacts request_for(const PointerRecord& record, const void* pointer) noexcept {
  if (record.facts.kind == ISTHMUS_KIND_UNKNOWN || record.request.nbytes != 0 ||
      !TrackingResource::is_any()) {
    return record.request;
  }
  const auto block =
      TrackingResource::find_record_of(record.facts, pointer, suballocated_since(pointer));
  return block ? RequestFacts{block->nbytes, block->queue} : record.request;
}

[[gnu::noinline]] isthmus_status_t query_cold(isthmus_context_t* context, const void* pointer,
                                              isthmus_pointer_info_t* info) noexcept {
  return driver_entry(ISTHMUS_NEEDS(info), [&]() -> Result<void> {
    ISTHMUS_TRY(check_struct_size(*info, "info", k_first_info_size));
    const auto record = record_of(object(context), pointer);
    write_facts(record.facts, *info);
    if (info->struct_size > k_first_info_size) {
      write_request(request_for(record, pointer), *info);
    }
    write_origin(record.context, record.resource, record.state, *info);
    return {};
  });
}

}  // namespace

isthmus_status_t isthmus_pointer_info(isthmus_context_t* context, const void* pointer,
                                      isthmus_pointer_info_t* info) noexcept {
  if (info != nullptr && info->struct_size >= sizeof *info && !os::is_forked_child() &&
      !TrackingResource::is_any()) [[likely]] {
    const auto block = bare_block_containing(pointer);
    if (block.common != nullptr &&
        (context == nullptr || object(context)->key() == block.common->context_key.load(k_relaxed)))
        [[likely]] {
      write_block(block, *info);
      return ISTHMUS_OK;
    }
  }
  return query_cold(context, pointer, info);
}

isthmus_status_t isthmus_pointer_origin(const void* pointer, isthmus_context_t** context,
                                        isthmus_resource_t** resource) noexcept {
  return driver_entry({}, [&]() -> Result<void> {
    auto origin = origin_of(pointer);
    if (context != nullptr) {
      *context = handle(origin.context.detach());
    }
    if (resource != nullptr) {
      *resource = handle(origin.resource.detach());
    }
    return {};
  });
}

namespace {

Result<BlockExtent> known_memory_at(const void* pointer) {
  auto extent = innermost_at(pointer);
  if (extent && !extent->memory) {
    return fail(ISTHMUS_ERROR_NOT_FOUND, "{} is not memory known to the library", pointer);
  }
  return extent;
}

}  // namespace

isthmus_status_t isthmus_record_event(const void* pointer, isthmus_event_t* event) noexcept {
  return driver_entry(ISTHMUS_NEEDS(event), [&]() -> Result<void> {
    auto extent = known_memory_at(pointer);
    ISTHMUS_TRY(extent);
    auto& uses = extent->memory->uses();
    uses.add({0, extent->range(), true}, Ref<isthmus::Event>{object(event)}, uses.begin());
    return {};
  });
}

isthmus_status_t isthmus_record_queue(const void* pointer, isthmus_queue_t* queue) noexcept {
  return driver_entry(ISTHMUS_NEEDS(queue), [&]() -> Result<void> {
    auto extent = known_memory_at(pointer);
    ISTHMUS_TRY(extent);
    return extent->memory->record_use(*object(queue), extent->range());
  });
}
