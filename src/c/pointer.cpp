// SPDX-License-Identifier: Apache-2.0
// What is known of a pointer, and operations on its memory.

#include <cstddef>

#include "c/common.hpp"
#include "memory/adaptors/tracking_resource.hpp"
#include "memory/facts.hpp"
#include "memory/innermost.hpp"
#include "memory/pooled.hpp"
#include "os/process.hpp"

using namespace isthmus;
using namespace isthmus::c;

namespace {

// Size of the first published version of the structure, which many programs were compiled with.
constexpr auto k_first_info_size = offsetof(isthmus_pointer_info_t, requested_bytes);

void tell(const PointerFacts& known, isthmus_pointer_info_t& info) noexcept {
  info.kind = known.kind;
  info.base = known.base;
  info.nbytes = known.nbytes;
  info.device = known.device == nullptr ? nullptr : handle(known.device);
}

// Writes these two fields if the caller's structure has them.
void tell_request(const RequestFacts& known, isthmus_pointer_info_t& info) noexcept {
  if (info.struct_size >= offsetof(isthmus_pointer_info_t, queue_key)) {
    info.requested_bytes = known.nbytes;
  }
  if (info.struct_size >= offsetof(isthmus_pointer_info_t, context)) {
    info.queue_key = known.queue_key;
  }
}

void tell_origin(Context* context, MemoryResource* resource, isthmus_memory_state_t state,
                 isthmus_pointer_info_t& info) noexcept {
  if (info.struct_size >= sizeof info) {
    info.context = handle(context);
    info.resource = handle(resource);
    info.state = state;
  }
}

// For callers whose structure has all fields: only stores, without branches.
void tell_all(const BareBlock& known, isthmus_pointer_info_t& info) noexcept {
  const auto& common = *known.common;
  info = {info.struct_size,
          common.kind.load(k_relaxed),
          known.start,
          known.nbytes,
          handle(common.where.load(k_relaxed)),
          0,
          0,
          handle(common.home.load(k_relaxed)),
          handle(common.from.load(k_relaxed)),
          ISTHMUS_MEMORY_LIVE};
}

// If the block does not record its request, looks it up in the tracking resources.
RequestFacts request_for(const PointerRecord& known, const void* pointer) noexcept {
  if (known.what.kind == ISTHMUS_KIND_UNKNOWN || known.request.nbytes != 0 ||
      !TrackingResource::is_any()) {
    return known.request;
  }
  const auto noted = TrackingResource::find_note_of(known.what, pointer, cut_since(pointer));
  return noted ? RequestFacts{noted->nbytes, noted->queue} : known.request;
}

[[gnu::noinline]] isthmus_status_t query_cold(isthmus_context_t* context, const void* pointer,
                                              isthmus_pointer_info_t* info) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(info);
    if (info->struct_size < k_first_info_size) {
      return is_too_small("info", info->struct_size, k_first_info_size);
    }
    if (os::is_forked_child()) {
      return refuse_child();
    }
    const auto known = record_of(object(context), pointer);
    tell(known.what, *info);
    if (info->struct_size > k_first_info_size) {
      tell_request(request_for(known, pointer), *info);
    }
    tell_origin(known.context, known.resource, known.state, *info);
    return {};
  });
}

}  // namespace

isthmus_status_t isthmus_pointer_query(isthmus_context_t* context, const void* pointer,
                                       isthmus_pointer_info_t* info) noexcept {
  if (info != nullptr && info->struct_size >= sizeof *info && !os::is_forked_child() &&
      !TrackingResource::is_any()) [[likely]] {
    const auto found = bare_block_holding(pointer);
    if (found.common != nullptr &&
        (context == nullptr || object(context)->key() == found.common->context_key.load(k_relaxed)))
        [[likely]] {
      tell_all(found, *info);
      return ISTHMUS_OK;
    }
  }
  return query_cold(context, pointer, info);
}

isthmus_status_t isthmus_pointer_origin(const void* pointer, isthmus_context_t** context,
                                        isthmus_resource_t** resource) noexcept {
  return guarded([&]() -> Result<void> {
    if (os::is_forked_child()) {
      return refuse_child();
    }
    auto known = origin_of(pointer);
    if (context != nullptr) {
      *context = handle(known.context.detach());
    }
    if (resource != nullptr) {
      *resource = handle(known.resource.detach());
    }
    return {};
  });
}

namespace {

Result<BlockExtent> known_memory_at(const void* pointer) {
  auto known = innermost_at(pointer);
  if (known && !known->memory) {
    return fail(ISTHMUS_ERROR_NOT_FOUND, "{} is not memory known to the library", pointer);
  }
  return known;
}

}  // namespace

isthmus_status_t isthmus_record_event(const void* pointer, isthmus_event_t* event) noexcept {
  return guarded([&]() -> Result<void> {
    if (os::is_forked_child()) {
      return refuse_child();
    }
    ISTHMUS_NEEDS(event);
    auto known = known_memory_at(pointer);
    ISTHMUS_TRY(known);
    auto& uses = known->memory->uses();
    uses.add({0, known->range(), true}, Ref<isthmus::Event>{object(event)}, uses.begin());
    return {};
  });
}

isthmus_status_t isthmus_record_queue(const void* pointer, isthmus_queue_t* queue) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(queue);
    if (os::is_forked_child()) {
      return refuse_child();
    }
    auto known = known_memory_at(pointer);
    ISTHMUS_TRY(known);
    return known->memory->note_use(*object(queue), known->range());
  });
}
