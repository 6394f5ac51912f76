// Memory resources, live totals, what is known of a pointer, host memory for results.

#include <algorithm>

#include "c/common.hpp"
#include "memory/facts.hpp"
#include "memory/live_counts.hpp"
#include "memory/provider.hpp"
#include "memory/reaper.hpp"
#include "memory/registry.hpp"
#include "memory/result_memory.hpp"
#include "os/process.hpp"

using namespace isthmus;
using namespace isthmus::c;

namespace {

// Behind the work on `on`. Not the start of anything allocated here: nothing is done.
result<void> deallocate(void* pointer, queue* on) {
  const auto memory = process_registry().find(pointer);
  if (!memory || memory->what().base != pointer) {
    return {};
  }
  std::vector<ref<event>> running;
  if (on != nullptr && !on->unfinished(running)) {
    return {};  // somebody may still use it and nobody can tell: lost memory, not lost data
  }
  auto& uses = memory->uses();
  for (const auto& each : running) {
    uses.add({0, {0, memory->what().nbytes}, true}, each, uses.begin());
  }
  memory->release();
  return {};
}

}  // namespace

isthmus_status_t isthmus_resource_provider(isthmus_context_t* context, isthmus_device_t* device,
                                           isthmus_kind_t kind,
                                           isthmus_resource_t** resource) noexcept {
  return guarded([&]() -> result<void> {
    ISTHMUS_NEEDS(context);
    ISTHMUS_NEEDS(resource);
    auto& home = *object(context);
    auto* where = device == nullptr ? home.devices().front() : object(device);
    if (!home.has(*where)) {
      return fail(ISTHMUS_ERROR_WRONG_CONTEXT, "{} is not a device of this context",
                  where->properties().filter);
    }
    if (auto bad = home.check(*where, {kind, 0, 0})) {
      return bad;
    }
    return give(result<ref<memory_resource>>{make_ref<provider>(home, *where, kind)}, resource);
  });
}

void isthmus_resource_retain(isthmus_resource_t* resource) noexcept {
  if (resource != nullptr) {
    object(resource)->retain();
  }
}

void isthmus_resource_release(isthmus_resource_t* resource) noexcept {
  if (resource != nullptr && !os::is_forked_child()) {
    object(resource)->release();
  }
}

isthmus_status_t isthmus_resource_allocate(isthmus_resource_t* resource, size_t nbytes,
                                           size_t alignment, isthmus_queue_t* queue,
                                           void** pointer) noexcept {
  return guarded([&]() -> result<void> {
    ISTHMUS_NEEDS(resource);
    ISTHMUS_NEEDS(queue);
    ISTHMUS_NEEDS(pointer);
    auto& from = *object(resource);
    if (from.home().key() != object(queue)->home().key()) {
      return fail(ISTHMUS_ERROR_WRONG_CONTEXT,
                  "the queue of {} belongs to another context than the memory resource",
                  object(queue)->where().properties().filter);
    }
    if (nbytes == 0) {
      *pointer = nullptr;
      return {};
    }
    auto memory = allocation::create(*object(queue), {from.kind(), nbytes, alignment}, &from);
    ISTHMUS_TRY(memory);
    *pointer = (*memory)->what().base;
    // The caller's pointer stands for this reference, till it is deallocated.
    static_cast<void>(memory->detach());
    return {};
  });
}

void isthmus_resource_deallocate(isthmus_resource_t*, void* pointer, size_t, size_t,
                                 isthmus_queue_t* queue) noexcept {
  if (pointer != nullptr && !os::is_forked_child()) {
    static_cast<void>(guarded([&] { return deallocate(pointer, object(queue)); }));
  }
}

void isthmus_live(isthmus_kind_t kind, uint64_t* count, uint64_t* bytes) noexcept {
  const bool known = kind >= ISTHMUS_KIND_UNKNOWN && kind <= ISTHMUS_KIND_HOST;
  const auto total = known ? process_live_counts().total(kind) : live_total{};
  if (count != nullptr) {
    *count = total.count;
  }
  if (bytes != nullptr) {
    *bytes = total.bytes;
  }
}

isthmus_status_t isthmus_pointer_query(isthmus_context_t* context, const void* pointer,
                                       isthmus_pointer_info_t* info) noexcept {
  return guarded([&]() -> result<void> {
    ISTHMUS_NEEDS(info);
    if (info->struct_size < sizeof *info) {
      return is_too_small("info", info->struct_size, sizeof *info);
    }
    if (os::is_forked_child()) {
      return refuse_child();
    }
    const auto known = context == nullptr ? facts_of(pointer) : facts_of(*object(context), pointer);
    info->kind = known.kind;
    info->base = known.base;
    info->nbytes = known.nbytes;
    info->device = known.home == nullptr ? nullptr : handle(known.home);
    return {};
  });
}

isthmus_status_t isthmus_result_allocate(size_t nbytes, void** pointer) noexcept {
  return guarded([&]() -> result<void> {
    ISTHMUS_NEEDS(pointer);
    auto memory = allocate_result(nbytes);
    ISTHMUS_TRY(memory);
    *pointer = *memory;
    return {};
  });
}

void isthmus_result_free(void* pointer) noexcept { free_result(pointer); }
