// SPDX-License-Identifier: Apache-2.0
// The resources that serve requests without a resource: default pools and current resources.

#include "c/common.hpp"
#include "memory/base/current_resources.hpp"
#include "memory/base/using_block.hpp"
#include "memory/pool/default_pools.hpp"
#include "os/process.hpp"

using namespace isthmus;
using namespace isthmus::c;

namespace {

Error unknown_flags_error(std::uint32_t flags, std::uint32_t known) {
  return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
              "flags {:#x} has unknown bits: the known ones are {:#x}", flags, known);
}

Result<void> return_default_pool(Queue& queue, isthmus_kind_t kind, std::uint32_t flags,
                                 isthmus_resource_t** resource) {
  const auto use = (flags & ISTHMUS_DEFAULT_POOL_OF_ARRAYS) != 0 ? DefaultPools::Use::arrays
                                                                 : DefaultPools::Use::buffers;
  auto pool = DefaultPools::only().find(queue.context(), queue.device(), kind, use);
  ISTHMUS_TRY(pool);
  return return_handle(Result<Ref<MemoryResource>>{*std::move(pool)}, resource);
}

// The error for a kind that does not exist or that the device lacks.
Result<void> check_kind(const Queue& queue, isthmus_kind_t kind) {
  if (auto error = queue.context().check(queue.device(), {kind, 0, 0})) {
    return error;
  }
  return {};
}

}  // namespace

isthmus_status_t isthmus_default_pool(isthmus_queue_t* queue, isthmus_kind_t kind, uint32_t flags,
                                      isthmus_resource_t** resource) noexcept {
  return driver_entry(ISTHMUS_NEEDS(resource), [&]() -> Result<void> {
    constexpr std::uint32_t k_known = ISTHMUS_DEFAULT_POOL_OF_ARRAYS;
    if ((flags & ~k_known) != 0) {
      return unknown_flags_error(flags, k_known);
    }
    auto actual_queue = queue_or_default(queue);
    ISTHMUS_TRY(actual_queue);
    return return_default_pool(**actual_queue, kind, flags, resource);
  });
}

isthmus_status_t isthmus_default_pools_trim(uint64_t* bytes) noexcept {
  return driver_entry({}, [&]() -> Result<void> {
    const auto trimmed_bytes = DefaultPools::only().trim();
    if (bytes != nullptr) {
      *bytes = trimmed_bytes;
    }
    return {};
  });
}

isthmus_status_t isthmus_current_resource(isthmus_queue_t* queue, isthmus_kind_t kind,
                                          uint32_t flags, isthmus_resource_t** resource) noexcept {
  return driver_entry(ISTHMUS_NEEDS(resource), [&]() -> Result<void> {
    constexpr std::uint32_t k_known = ISTHMUS_DEFAULT_POOL_OF_ARRAYS | ISTHMUS_NO_DEFAULT_POOL;
    if ((flags & ~k_known) != 0) {
      return unknown_flags_error(flags, k_known);
    }
    auto actual_queue = queue_or_default(queue);
    ISTHMUS_TRY(actual_queue);
    if (has_current_resources()) [[unlikely]] {
      if (auto current = current_resource(kind, **actual_queue)) {
        return return_handle(Result<Ref<MemoryResource>>{std::move(current)}, resource);
      }
    }
    if ((flags & ISTHMUS_NO_DEFAULT_POOL) == 0) {
      return return_default_pool(**actual_queue, kind, flags, resource);
    }
    ISTHMUS_TRY(check_kind(**actual_queue, kind));
    *resource = nullptr;
    return {};
  });
}

isthmus_status_t isthmus_current_resource_set(isthmus_resource_t* resource) noexcept {
  return driver_entry({}, [&]() -> Result<void> {
    if (resource != nullptr) {
      CurrentResources::only().set(Ref{object(resource)});
    } else {
      CurrentResources::only().reset_all();
    }
    return {};
  });
}

isthmus_status_t isthmus_current_resource_reset(isthmus_queue_t* queue,
                                                isthmus_kind_t kind) noexcept {
  return driver_entry({}, [&]() -> Result<void> {
    auto actual_queue = queue_or_default(queue);
    ISTHMUS_TRY(actual_queue);
    ISTHMUS_TRY(check_kind(**actual_queue, kind));
    CurrentResources::only().reset(ResourceKey::of(kind, **actual_queue));
    return {};
  });
}

const uint32_t* isthmus_current_resource_watch() noexcept {
  static_assert(sizeof current_resource_users == sizeof(uint32_t));
  return reinterpret_cast<const uint32_t*>(&current_resource_users);
}

isthmus_status_t isthmus_using_create(isthmus_resource_t* resource,
                                      isthmus_using_t** block) noexcept {
  return entry(ISTHMUS_NEEDS(block), [&]() -> Result<void> {
    return return_handle(Result{make_ref<UsingBlock>(object(resource))}, block);
  });
}

void isthmus_using_retain(isthmus_using_t* block) noexcept {
  if (block != nullptr) {
    object(block)->retain();
  }
}

void isthmus_using_release(isthmus_using_t* block) noexcept {
  if (block != nullptr && !os::is_forked_child()) {
    object(block)->release();
  }
}

isthmus_using_t* isthmus_using_swap(isthmus_using_t* block) noexcept {
  return handle(UsingBlock::swap_current(object(block)));
}
