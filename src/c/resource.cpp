// SPDX-License-Identifier: Apache-2.0
// Memory resources, totals of live memory, and host memory for results.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>

#include "c/common.hpp"
#include "core/expects.hpp"
#include "core/long_path.hpp"
#include "core/sizes.hpp"
#include "memory/base/live_counts.hpp"
#include "memory/base/provider.hpp"
#include "memory/base/result_memory.hpp"
#include "memory/pool/default_pools.hpp"
#include "memory/pool/pool.hpp"
#include "memory/pool/pool_of.hpp"
#include "memory/records/bare_pointers.hpp"
#include "memory/records/recorded_upstream.hpp"
#include "os/process.hpp"

using namespace isthmus;
using namespace isthmus::c;

namespace {

Result<Ref<Context>> context_or_default(isthmus_context_t* requested, isthmus_device_t* device) {
  if (requested != nullptr) {
    return Ref{object(requested)};
  }
  if (device == nullptr) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "context and device are both NULL: pass a device, whose default context is used, "
                "or a context");
  }
  if (os::is_forked_child()) {
    return forked_child_error();
  }
  return object(device)->platform().default_context();
}

}  // namespace

Result<ResourceLocation> isthmus::c::location_for(isthmus_context_t* context,
                                                  isthmus_device_t* device, isthmus_kind_t kind) {
  auto found = context_or_default(context, device);
  ISTHMUS_TRY(found);
  auto& actual_context = **found;
  auto& actual_device = device == nullptr ? *actual_context.devices().front() : *object(device);
  if (!actual_context.has(actual_device)) {
    return fail(ISTHMUS_ERROR_WRONG_CONTEXT,
                "{} is not a device of this context: use one of the context's devices",
                actual_device.properties().filter);
  }
  if (auto error = actual_context.check(actual_device, {kind, 0, 0})) {
    return error;
  }
  return ResourceLocation{*std::move(found), actual_device};
}

namespace {

Error wrong_context_error(const Queue& queue) {
  return fail(ISTHMUS_ERROR_WRONG_CONTEXT,
              "the queue of {} belongs to another context than the memory resource: use a queue of "
              "the resource's context",
              queue.device().properties().filter);
}

bool same_context(const MemoryResource& resource, const Queue& queue) noexcept {
  return resource.context().is_same_as(queue.context());
}

// Returns options with the defaults in those fields that the caller's structure lacks because it
// was compiled with an older header.
Result<isthmus_pool_options_t> full_options(const isthmus_pool_options_t& options) {
  ISTHMUS_TRY(
      check_struct_size(options, "options", offsetof(isthmus_pool_options_t, soft_limit_bytes)));
  isthmus_pool_options_t full{};
  std::memcpy(&full, &options, std::min(options.struct_size, sizeof full));
  return full;
}

Error check_options(const isthmus_pool_options_t& options) {
  constexpr std::uint32_t k_all_flags =
      ISTHMUS_POOL_UNCHECKED | ISTHMUS_POOL_NO_REMAP | ISTHMUS_POOL_DEVICE_WAIT;
  if ((options.flags & ~k_all_flags) != 0) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "options->flags {:#x} has unknown bits: the known ones are {:#x}", options.flags,
                k_all_flags);
  }
  if (options.limit_bytes != 0 && options.soft_limit_bytes > options.limit_bytes) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "the soft limit of {} exceeds the limit of {}: lower it, or set none",
                describe_bytes(options.soft_limit_bytes), describe_bytes(options.limit_bytes));
  }
  constexpr std::int64_t k_max_wait_ns = std::chrono::nanoseconds{std::chrono::years{1}}.count();
  if (options.wait_ns > k_max_wait_ns) {
    return fail(
        ISTHMUS_ERROR_INVALID_ARGUMENT,
        "options->wait_ns {} is more than a year ({}), but a wait for memory must end, because the "
        "work may depend on the waiting thread: use less, or a negative number for no wait",
        options.wait_ns, k_max_wait_ns);
  }
  return {};
}

std::size_t limit_or_none(std::uint64_t limit) noexcept { return limit == 0 ? SIZE_MAX : limit; }

Result<Pool::Options> options_of(const isthmus_pool_options_t* options) {
  Pool::Options result;
  if (options == nullptr) {
    return result;
  }
  auto full = full_options(*options);
  ISTHMUS_TRY(full);
  if (auto error = check_options(*full)) {
    return error;
  }
  result.growth_bytes = full->growth_bytes;
  result.initial_bytes = full->initial_bytes;
  result.limit_bytes = limit_or_none(full->limit_bytes);
  result.soft_limit_bytes = limit_or_none(full->soft_limit_bytes);
  result.checks = (full->flags & ISTHMUS_POOL_UNCHECKED) == 0;
  result.remaps = (full->flags & ISTHMUS_POOL_NO_REMAP) == 0;
  result.device_wait = (full->flags & ISTHMUS_POOL_DEVICE_WAIT) != 0;
  if (full->wait_ns != 0) {
    result.max_wait = std::chrono::nanoseconds{std::max<std::int64_t>(full->wait_ns, 0)};
  }
  result.shared = Ref{object(full->budget)};
  result.decay = std::chrono::nanoseconds{
      static_cast<std::int64_t>(std::min<std::uint64_t>(full->decay_ns, INT64_MAX))};
  return result;
}

}  // namespace

isthmus_status_t isthmus_resource_provider(isthmus_context_t* context, isthmus_device_t* device,
                                           isthmus_kind_t kind,
                                           isthmus_resource_t** resource) noexcept {
  return entry(ISTHMUS_NEEDS(resource), [&]() -> Result<void> {
    auto location = location_for(context, device, kind);
    ISTHMUS_TRY(location);
    return return_handle(
        Result<Ref<MemoryResource>>{make_ref<Provider>(*location->context, location->device, kind)},
        resource);
  });
}

isthmus_status_t isthmus_resource_write_combined(isthmus_context_t* context,
                                                 isthmus_device_t* device,
                                                 isthmus_resource_t** resource) noexcept {
  return entry(ISTHMUS_NEEDS(resource), [&]() -> Result<void> {
    auto location = location_for(context, device, ISTHMUS_KIND_HOST);
    ISTHMUS_TRY(location);
    if (auto error = location->context->check(location->device, {ISTHMUS_KIND_HOST, 1, 0, true})) {
      return error;
    }
    return return_handle(Result<Ref<MemoryResource>>{make_ref<Provider>(
                             *location->context, location->device, ISTHMUS_KIND_HOST, true)},
                         resource);
  });
}

isthmus_status_t isthmus_resource_pool(isthmus_context_t* context, isthmus_device_t* device,
                                       isthmus_kind_t kind, const isthmus_pool_options_t* options,
                                       isthmus_resource_t** resource) noexcept {
  return entry(ISTHMUS_NEEDS(resource), [&]() -> Result<void> {
    auto location = location_for(context, device, kind);
    ISTHMUS_TRY(location);
    auto pool_options = options_of(options);
    ISTHMUS_TRY(pool_options);
    auto pool = Pool::create(*location->context, location->device, kind, *pool_options);
    ISTHMUS_TRY(pool);
    return return_handle(Result<Ref<MemoryResource>>{*std::move(pool)}, resource);
  });
}

isthmus_status_t isthmus_resource_pool_over(isthmus_resource_t* upstream,
                                            const isthmus_pool_options_t* options,
                                            isthmus_resource_t** resource) noexcept {
  return driver_entry(ISTHMUS_NEEDS(upstream, resource), [&]() -> Result<void> {
    auto pool_options = options_of(options);
    ISTHMUS_TRY(pool_options);
    auto& upstream_resource = *object(upstream);
    auto pool_upstream = RecordedUpstream::create(Ref<MemoryResource>{&upstream_resource});
    ISTHMUS_TRY(pool_upstream);
    pool_options->upstream = *std::move(pool_upstream);
    auto pool = Pool::create(upstream_resource.context(), upstream_resource.device(),
                             upstream_resource.kind(), *pool_options);
    ISTHMUS_TRY(pool);
    return return_handle(Result<Ref<MemoryResource>>{*std::move(pool)}, resource);
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

namespace {

[[gnu::noinline]] isthmus_status_t allocate_cold(isthmus_resource_t* resource, size_t nbytes,
                                                 size_t alignment, isthmus_queue_t* queue,
                                                 void** pointer) noexcept {
  return driver_entry(ISTHMUS_NEEDS(resource, queue, pointer), [&]() -> Result<void> {
    auto& memory_resource = *object(resource);
    if (!same_context(memory_resource, *object(queue))) {
      return wrong_context_error(*object(queue));
    }
    if (nbytes == 0) {
      *pointer = nullptr;
      return {};
    }
    return return_value(allocate_raw(memory_resource, nbytes, alignment, *object(queue)), pointer);
  });
}

[[gnu::noinline]] isthmus_status_t deallocate_cold(isthmus_resource_t* resource, void* pointer,
                                                   size_t nbytes, isthmus_queue_t* queue) noexcept {
  if (pointer == nullptr || os::is_forked_child()) {
    return ISTHMUS_OK;
  }
  return entry(ISTHMUS_NEEDS(resource), [&]() -> Result<void> {
    auto& memory_resource = *object(resource);
    if (queue != nullptr && !same_context(memory_resource, *object(queue))) {
      return wrong_context_error(*object(queue));
    }
    return deallocate_raw(memory_resource, pointer, nbytes, object(queue));
  });
}

// For resources that wrap others, whose warm path consists of a few virtual calls.
[[gnu::noinline]] isthmus_status_t allocate_through(isthmus_resource_t* resource, size_t nbytes,
                                                    size_t alignment, isthmus_queue_t* queue,
                                                    void** pointer) noexcept {
  ISTHMUS_EXPECTS(!os::is_forked_child());
  if (void* block = object(resource)->allocate_fast(nbytes, alignment, object(queue))) {
    *pointer = block;
    return ISTHMUS_OK;
  }
  return allocate_cold(resource, nbytes, alignment, queue, pointer);
}

[[gnu::noinline]] isthmus_status_t deallocate_through(isthmus_resource_t* resource, void* pointer,
                                                      size_t nbytes,
                                                      isthmus_queue_t* queue) noexcept {
  return object(resource)->deallocate_fast(pointer, nbytes, object(queue))
             ? ISTHMUS_OK
             : deallocate_cold(resource, pointer, nbytes, queue);
}

// For null pointers, in a forked child, and while allocations or frees are observed.
[[gnu::noinline]] isthmus_status_t allocate_long(isthmus_resource_t* resource, size_t nbytes,
                                                 size_t alignment, isthmus_queue_t* queue,
                                                 void** pointer) noexcept {
  const bool is_cold = resource == nullptr || pointer == nullptr || os::is_forked_child();
  return is_cold ? allocate_cold(resource, nbytes, alignment, queue, pointer)
                 : allocate_through(resource, nbytes, alignment, queue, pointer);
}

[[gnu::noinline]] isthmus_status_t deallocate_long(isthmus_resource_t* resource, void* pointer,
                                                   size_t nbytes, isthmus_queue_t* queue) noexcept {
  const bool is_cold = resource == nullptr || os::is_forked_child();
  return is_cold ? deallocate_cold(resource, pointer, nbytes, queue)
                 : deallocate_through(resource, pointer, nbytes, queue);
}

}  // namespace

// Only a pool's warm path is inline here, without memory events. Longer paths are tail calls, so
// that the warm path does not save the registers that they need.

isthmus_status_t isthmus_resource_allocate(isthmus_resource_t* resource, size_t nbytes,
                                           size_t alignment, isthmus_queue_t* queue,
                                           void** pointer) noexcept {
  if (resource == nullptr || pointer == nullptr || takes_long_path()) [[unlikely]] {
    return allocate_long(resource, nbytes, alignment, queue, pointer);
  }
  auto* pool = pool_of(*object(resource));
  if (pool == nullptr) [[unlikely]] {
    return allocate_through(resource, nbytes, alignment, queue, pointer);
  }
  if (void* block = pool->allocate_cached(nbytes, alignment, object(queue))) [[likely]] {
    *pointer = block;
    return ISTHMUS_OK;
  }
  return allocate_cold(resource, nbytes, alignment, queue, pointer);
}

isthmus_status_t isthmus_resource_deallocate(isthmus_resource_t* resource, void* pointer,
                                             size_t nbytes, size_t,
                                             isthmus_queue_t* queue) noexcept {
  if (resource == nullptr || takes_long_path()) [[unlikely]] {
    return deallocate_long(resource, pointer, nbytes, queue);
  }
  auto* pool = pool_of(*object(resource));
  if (pool == nullptr) [[unlikely]] {
    return deallocate_through(resource, pointer, nbytes, queue);
  }
  return pool->deallocate_cached(pointer, object(queue))
             ? ISTHMUS_OK
             : deallocate_cold(resource, pointer, nbytes, queue);
}

isthmus_status_t isthmus_resource_trim(isthmus_resource_t* resource, uint64_t keep_bytes,
                                       uint64_t* released_bytes) noexcept {
  return driver_entry_after_releases(ISTHMUS_NEEDS(resource), [&]() -> Result<void> {
    const auto bytes = object(resource)->trim(keep_bytes);
    if (released_bytes != nullptr) {
      *released_bytes = bytes;
    }
    return {};
  });
}

isthmus_status_t isthmus_resource_info(isthmus_resource_t* resource,
                                       isthmus_resource_info_t* info) noexcept {
  return driver_entry_after_releases(ISTHMUS_NEEDS(resource, info), [&]() -> Result<void> {
    ISTHMUS_TRY(check_struct_size(*info, "info", offsetof(isthmus_resource_info_t, maps)));
    auto& memory_resource = *object(resource);
    const auto usage = memory_resource.usage();
    info->kind = memory_resource.kind();
    info->device = handle(&memory_resource.device());
    info->kinds = memory_resource.kinds();
    info->held_bytes = usage.held_bytes;
    info->free_bytes = usage.free_bytes;
    if (info->struct_size >= sizeof *info) {
      info->maps = usage.maps;
      info->unmaps = usage.unmaps;
    }
    return {};
  });
}

isthmus_status_t isthmus_live_info(isthmus_kind_t kind, isthmus_live_info_t* info) noexcept {
  return entry_after_releases(ISTHMUS_NEEDS(info), [&]() -> Result<void> {
    ISTHMUS_TRY(check_struct_size(*info, "info"));
    if (kind < ISTHMUS_KIND_UNKNOWN || kind > ISTHMUS_KIND_HOST) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                  "kind is {}: use device (1), shared (2), host (3), or unknown (0) for all", kind);
    }
    auto total = process_live_counts().total(kind);
    if (!os::is_forked_child()) {
      DefaultPools::only().count_blocks(total, kind);
    }
    info->count = total.count;
    info->bytes = total.bytes;
    return {};
  });
}

isthmus_status_t isthmus_result_allocate(size_t nbytes, void** pointer) noexcept {
  return entry(ISTHMUS_NEEDS(pointer),
               [&]() -> Result<void> { return return_value(allocate_result(nbytes), pointer); });
}

void isthmus_result_free(void* pointer) noexcept { free_result(pointer); }
