// SPDX-License-Identifier: Apache-2.0
// Memory resources, totals of live memory, and host memory for results.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>

#include "c/common.hpp"
#include "core/sizes.hpp"
#include "memory/default_pools.hpp"
#include "memory/deferred_release.hpp"
#include "memory/live_counts.hpp"
#include "memory/pool.hpp"
#include "memory/provider.hpp"
#include "memory/raw.hpp"
#include "memory/result_memory.hpp"
#include "os/process.hpp"

using namespace isthmus;
using namespace isthmus::c;

Result<Device*> isthmus::c::device_for(Context& context, isthmus_device_t* chosen,
                                       isthmus_kind_t kind) {
  auto* used_device = chosen == nullptr ? context.devices().front() : object(chosen);
  if (!context.has(*used_device)) {
    return fail(ISTHMUS_ERROR_WRONG_CONTEXT, "{} is not a device of this context",
                used_device->properties().filter);
  }
  if (auto bad = context.check(*used_device, {kind, 0, 0})) {
    return bad;
  }
  return used_device;
}

namespace {

Error wrong_context(const Queue& queue) {
  return fail(ISTHMUS_ERROR_WRONG_CONTEXT,
              "the queue of {} belongs to another context than the memory resource",
              queue.device().properties().filter);
}

bool same_context(const MemoryResource& resource, const Queue& queue) noexcept {
  return resource.context().is_same_as(queue.context());
}

// Fills in defaults for fields that a caller compiled with an older header lacks.
Result<isthmus_pool_options_t> whole_options(const isthmus_pool_options_t& given) {
  constexpr auto k_first_size = offsetof(isthmus_pool_options_t, soft_limit_bytes);
  if (given.struct_size < k_first_size) {
    return is_too_small("options", given.struct_size, k_first_size);
  }
  isthmus_pool_options_t whole{};
  std::memcpy(&whole, &given, std::min(given.struct_size, sizeof whole));
  return whole;
}

Error check_options(const isthmus_pool_options_t& given) {
  constexpr std::uint32_t k_known =
      ISTHMUS_POOL_UNCHECKED | ISTHMUS_POOL_NO_REMAP | ISTHMUS_POOL_DEVICE_WAIT;
  if ((given.flags & ~k_known) != 0) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "options->flags {:#x} has unknown bits",
                given.flags);
  }
  if (given.limit_bytes != 0 && given.soft_limit_bytes > given.limit_bytes) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "the soft limit of {} exceeds the limit of {}: lower it, or set none",
                describe_bytes(given.soft_limit_bytes), describe_bytes(given.limit_bytes));
  }
  constexpr std::int64_t k_longest_wait = std::chrono::nanoseconds{std::chrono::years{1}}.count();
  if (given.wait_ns > k_longest_wait) {
    return fail(
        ISTHMUS_ERROR_INVALID_ARGUMENT,
        "options->wait_ns {} is more than a year ({}), but a wait for memory must end, because the "
        "work may depend on the waiting thread: use less, or a negative number for no wait",
        given.wait_ns, k_longest_wait);
  }
  return {};
}

std::size_t limit_or_none(std::uint64_t given) noexcept { return given == 0 ? SIZE_MAX : given; }

Result<Pool::Options> options_of(const isthmus_pool_options_t* given) {
  Pool::Options how;
  if (given == nullptr) {
    return how;
  }
  auto whole = whole_options(*given);
  ISTHMUS_TRY(whole);
  if (auto bad = check_options(*whole)) {
    return bad;
  }
  how.growth_bytes = whole->growth_bytes;
  how.initial_bytes = whole->initial_bytes;
  how.limit_bytes = limit_or_none(whole->limit_bytes);
  how.soft_limit_bytes = limit_or_none(whole->soft_limit_bytes);
  how.checks = (whole->flags & ISTHMUS_POOL_UNCHECKED) == 0;
  how.remaps = (whole->flags & ISTHMUS_POOL_NO_REMAP) == 0;
  how.device_wait = (whole->flags & ISTHMUS_POOL_DEVICE_WAIT) != 0;
  if (whole->wait_ns != 0) {
    how.longest_wait = std::chrono::nanoseconds{std::max<std::int64_t>(whole->wait_ns, 0)};
  }
  how.shared = Ref{object(whole->budget)};
  how.decay = std::chrono::nanoseconds{
      static_cast<std::int64_t>(std::min<std::uint64_t>(whole->decay_ns, INT64_MAX))};
  return how;
}

}  // namespace

isthmus_status_t isthmus_resource_provider(isthmus_context_t* context, isthmus_device_t* device,
                                           isthmus_kind_t kind,
                                           isthmus_resource_t** resource) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(context);
    ISTHMUS_NEEDS(resource);
    auto used_device = device_for(*object(context), device, kind);
    ISTHMUS_TRY(used_device);
    return give(
        Result<Ref<MemoryResource>>{make_ref<Provider>(*object(context), **used_device, kind)},
        resource);
  });
}

isthmus_status_t isthmus_resource_write_combined(isthmus_context_t* context,
                                                 isthmus_device_t* device,
                                                 isthmus_resource_t** resource) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(context);
    ISTHMUS_NEEDS(resource);
    auto& home = *object(context);
    auto used_device = device_for(home, device, ISTHMUS_KIND_HOST);
    ISTHMUS_TRY(used_device);
    if (auto bad = home.check(**used_device, {ISTHMUS_KIND_HOST, 1, 0, true})) {
      return bad;
    }
    return give(Result<Ref<MemoryResource>>{make_ref<Provider>(home, **used_device,
                                                               ISTHMUS_KIND_HOST, true)},
                resource);
  });
}

isthmus_status_t isthmus_resource_pool(isthmus_context_t* context, isthmus_device_t* device,
                                       isthmus_kind_t kind, const isthmus_pool_options_t* options,
                                       isthmus_resource_t** resource) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(context);
    ISTHMUS_NEEDS(resource);
    auto used_device = device_for(*object(context), device, kind);
    ISTHMUS_TRY(used_device);
    auto how = options_of(options);
    ISTHMUS_TRY(how);
    auto made = Pool::create(*object(context), **used_device, kind, *how);
    ISTHMUS_TRY(made);
    return give(Result<Ref<MemoryResource>>{*std::move(made)}, resource);
  });
}

isthmus_status_t isthmus_resource_pool_over(isthmus_resource_t* upstream,
                                            const isthmus_pool_options_t* options,
                                            isthmus_resource_t** resource) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(upstream);
    ISTHMUS_NEEDS(resource);
    if (os::is_forked_child()) {
      return refuse_child();
    }
    auto how = options_of(options);
    ISTHMUS_TRY(how);
    auto& under = *object(upstream);
    how->upstream = Ref<MemoryResource>{&under};
    auto made = Pool::create(under.context(), under.device(), under.kind(), *how);
    ISTHMUS_TRY(made);
    return give(Result<Ref<MemoryResource>>{*std::move(made)}, resource);
  });
}

isthmus_status_t isthmus_default_pool(isthmus_queue_t* queue, isthmus_kind_t kind, uint32_t flags,
                                      isthmus_resource_t** resource) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(resource);
    if (os::is_forked_child()) {
      return refuse_child();
    }
    if ((flags & ~std::uint32_t{ISTHMUS_DEFAULT_POOL_OF_ARRAYS}) != 0) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "flags {:#x} has unknown bits", flags);
    }
    auto on = queue_or_default(queue);
    ISTHMUS_TRY(on);
    const auto by = (flags & ISTHMUS_DEFAULT_POOL_OF_ARRAYS) != 0 ? DefaultPools::Use::arrays
                                                                  : DefaultPools::Use::buffers;
    auto found = DefaultPools::only().find((*on)->context(), (*on)->device(), kind, by);
    ISTHMUS_TRY(found);
    return give(Result<Ref<MemoryResource>>{*std::move(found)}, resource);
  });
}

isthmus_status_t isthmus_default_pools_trim(uint64_t* bytes) noexcept {
  return guarded([&]() -> Result<void> {
    if (os::is_forked_child()) {
      return refuse_child();
    }
    const auto given_back = DefaultPools::only().trim();
    if (bytes != nullptr) {
      *bytes = given_back;
    }
    return {};
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
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(resource);
    ISTHMUS_NEEDS(queue);
    ISTHMUS_NEEDS(pointer);
    if (os::is_forked_child()) {
      return refuse_child();
    }
    auto& from = *object(resource);
    if (!same_context(from, *object(queue))) {
      return wrong_context(*object(queue));
    }
    if (nbytes == 0) {
      *pointer = nullptr;
      return {};
    }
    auto memory = allocate_raw(from, nbytes, alignment, *object(queue));
    ISTHMUS_TRY(memory);
    *pointer = *memory;
    return {};
  });
}

[[gnu::noinline]] isthmus_status_t deallocate_cold(isthmus_resource_t* resource, void* pointer,
                                                   size_t nbytes, isthmus_queue_t* queue) noexcept {
  if (pointer == nullptr || os::is_forked_child()) {
    return ISTHMUS_OK;
  }
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(resource);
    auto& from = *object(resource);
    if (queue != nullptr && !same_context(from, *object(queue))) {
      return wrong_context(*object(queue));
    }
    return deallocate_raw(from, pointer, nbytes, object(queue));
  });
}

// For resources that wrap others, whose warm path consists of a few virtual calls. Pre: not in a
// forked child.
[[gnu::noinline]] isthmus_status_t allocate_through(isthmus_resource_t* resource, size_t nbytes,
                                                    size_t alignment, isthmus_queue_t* queue,
                                                    void** pointer) noexcept {
  if (void* block = object(resource)->allocate_warm(nbytes, alignment, object(queue))) {
    *pointer = block;
    return ISTHMUS_OK;
  }
  return allocate_cold(resource, nbytes, alignment, queue, pointer);
}

[[gnu::noinline]] isthmus_status_t deallocate_through(isthmus_resource_t* resource, void* pointer,
                                                      size_t nbytes,
                                                      isthmus_queue_t* queue) noexcept {
  return object(resource)->deallocate_warm(pointer, nbytes, object(queue))
             ? ISTHMUS_OK
             : deallocate_cold(resource, pointer, nbytes, queue);
}

}  // namespace

// Only a pool's warm path is inline here. Longer paths are tail calls, so that the warm path does
// not save the registers that they need.

isthmus_status_t isthmus_resource_allocate(isthmus_resource_t* resource, size_t nbytes,
                                           size_t alignment, isthmus_queue_t* queue,
                                           void** pointer) noexcept {
  if (resource == nullptr || pointer == nullptr || os::is_forked_child()) [[unlikely]] {
    return allocate_cold(resource, nbytes, alignment, queue, pointer);
  }
  auto* from = object(resource)->as_pool();
  if (from == nullptr) [[unlikely]] {
    return allocate_through(resource, nbytes, alignment, queue, pointer);
  }
  if (void* block = from->allocate_warm(nbytes, alignment, object(queue))) [[likely]] {
    *pointer = block;
    return ISTHMUS_OK;
  }
  return allocate_cold(resource, nbytes, alignment, queue, pointer);
}

isthmus_status_t isthmus_resource_deallocate(isthmus_resource_t* resource, void* pointer,
                                             size_t nbytes, size_t,
                                             isthmus_queue_t* queue) noexcept {
  if (resource == nullptr || os::is_forked_child()) [[unlikely]] {
    return deallocate_cold(resource, pointer, nbytes, queue);
  }
  auto* to = object(resource)->as_pool();
  if (to == nullptr) [[unlikely]] {
    return deallocate_through(resource, pointer, nbytes, queue);
  }
  return to->deallocate_warm(pointer, nbytes, object(queue))
             ? ISTHMUS_OK
             : deallocate_cold(resource, pointer, nbytes, queue);
}

isthmus_status_t isthmus_resource_trim(isthmus_resource_t* resource, uint64_t keep_bytes,
                                       uint64_t* given_back) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(resource);
    if (os::is_forked_child()) {
      return refuse_child();
    }
    release_on_demand();
    const auto bytes = object(resource)->trim(keep_bytes);
    if (given_back != nullptr) {
      *given_back = bytes;
    }
    return {};
  });
}

isthmus_status_t isthmus_resource_query(isthmus_resource_t* resource,
                                        isthmus_resource_info_t* info) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(resource);
    ISTHMUS_NEEDS(info);
    constexpr auto k_first_size = offsetof(isthmus_resource_info_t, maps);
    if (info->struct_size < k_first_size) {
      return is_too_small("info", info->struct_size, k_first_size);
    }
    if (os::is_forked_child()) {
      return refuse_child();
    }
    release_on_demand();
    auto& from = *object(resource);
    const auto now = from.usage();
    info->kind = from.kind();
    info->device = handle(&from.device());
    info->kinds = from.kinds();
    info->held_bytes = now.held_bytes;
    info->free_bytes = now.free_bytes;
    if (info->struct_size >= sizeof *info) {
      info->maps = now.maps;
      info->unmaps = now.unmaps;
    }
    return {};
  });
}

void isthmus_live(isthmus_kind_t kind, uint64_t* count, uint64_t* bytes) noexcept {
  const bool known = kind >= ISTHMUS_KIND_UNKNOWN && kind <= ISTHMUS_KIND_HOST;
  release_on_demand();
  auto total = known ? process_live_counts().total(kind) : LiveTotal{};
  if (known && !os::is_forked_child()) {
    DefaultPools::only().count_blocks(total, kind);
  }
  if (count != nullptr) {
    *count = total.count;
  }
  if (bytes != nullptr) {
    *bytes = total.bytes;
  }
}

isthmus_status_t isthmus_result_allocate(size_t nbytes, void** pointer) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(pointer);
    auto memory = allocate_result(nbytes);
    ISTHMUS_TRY(memory);
    *pointer = *memory;
    return {};
  });
}

void isthmus_result_free(void* pointer) noexcept { free_result(pointer); }
