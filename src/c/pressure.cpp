// SPDX-License-Identifier: Apache-2.0
// Pools that run out of memory: snapshots, out-of-memory stages (oom_stages) and callbacks.

#include <algorithm>
#include <cstddef>

#include "c/common.hpp"
#include "memory/base/holders.hpp"
#include "memory/pool/pool_of.hpp"
#include "os/process.hpp"

using namespace isthmus;
using namespace isthmus::c;

namespace {

Result<Pool*> pool_of(isthmus_resource_t* resource) {
  auto* const pool = isthmus::pool_of(*object(resource));
  if (pool == nullptr) {
    return fail(ISTHMUS_ERROR_UNSUPPORTED,
                "the resource of {} memory on {} is not a pool: only pools have this information",
                kind_name(object(resource)->kind()),
                object(resource)->device().properties().filter);
  }
  return pool;
}

Result<void> write_snapshot(const Snapshot& snapshot, isthmus_snapshot_t& out) {
  ISTHMUS_TRY(check_struct_size(out, "snapshot", offsetof(isthmus_snapshot_t, holder_count)));
  out.held_bytes = snapshot.held;
  out.live_bytes = snapshot.live;
  out.cached_bytes = snapshot.cached;
  out.waiting_bytes = snapshot.waiting;
  out.free_bytes = snapshot.free;
  out.largest_free_bytes = snapshot.largest_request;
  if (out.struct_size >= offsetof(isthmus_snapshot_t, device)) {
    out.holder_count = snapshot.holder_count;
    std::transform(snapshot.holders.begin(), snapshot.holders.end(), out.holders,
                   [](const Holder& holder) -> isthmus_holder_t {
                     return {holder.tag, holder.bytes, holder.count};
                   });
  }
  return {};
}

// `shortage` is null if no request failed.
void write_request(const Shortage* shortage, isthmus_snapshot_t& out) noexcept {
  if (out.struct_size >= sizeof out) {
    out.device = shortage != nullptr ? shortage->device.data() : nullptr;
    out.kind = shortage != nullptr ? shortage->kind : ISTHMUS_KIND_UNKNOWN;
    out.oom_stages = shortage != nullptr ? shortage->stages : 0;
    out.requested_bytes = shortage != nullptr ? shortage->requested : 0;
    out.advice = shortage != nullptr ? shortage->advice : nullptr;
  }
}

}  // namespace

isthmus_status_t isthmus_resource_snapshot(isthmus_resource_t* resource,
                                           isthmus_snapshot_t* snapshot) noexcept {
  return driver_entry(ISTHMUS_NEEDS(resource, snapshot), [&]() -> Result<void> {
    auto pool = pool_of(resource);
    ISTHMUS_TRY(pool);
    auto pool_snapshot = (*pool)->count_with_largest_request();
    find_holders(**pool, pool_snapshot);
    ISTHMUS_TRY(write_snapshot(pool_snapshot, *snapshot));
    write_request(nullptr, *snapshot);
    return {};
  });
}

isthmus_status_t isthmus_error_snapshot(isthmus_snapshot_t* snapshot) noexcept {
  const auto* const shortage = shortage_of(last_error());
  if (shortage == nullptr) {
    return ISTHMUS_ERROR_NOT_FOUND;  // leaves the last error unchanged
  }
  return entry(ISTHMUS_NEEDS(snapshot), [&]() -> Result<void> {
    ISTHMUS_TRY(write_snapshot(shortage->snapshot, *snapshot));
    write_request(shortage, *snapshot);
    return {};
  });
}

const char* isthmus_oom_stage_name(isthmus_oom_stage_t oom_stage) noexcept {
  return oom_stage < 0 || static_cast<std::size_t>(oom_stage) >= k_oom_stages
             ? nullptr
             : oom_stage_name(static_cast<isthmus::OomStage>(oom_stage));
}

isthmus_status_t isthmus_oom_stage_info(isthmus_resource_t* resource, isthmus_oom_stage_t oom_stage,
                                        isthmus_oom_stage_info_t* info) noexcept {
  return driver_entry(ISTHMUS_NEEDS(resource, info), [&]() -> Result<void> {
    ISTHMUS_TRY(check_struct_size(*info, "info"));
    auto pool = pool_of(resource);
    ISTHMUS_TRY(pool);
    if (isthmus_oom_stage_name(oom_stage) == nullptr) {
      return fail(ISTHMUS_ERROR_NOT_FOUND, "out-of-memory stage {} does not exist: use 0 to {}",
                  oom_stage, k_oom_stages - 1);
    }
    const auto counts = (*pool)->oom_stages().counts_of(static_cast<isthmus::OomStage>(oom_stage));
    info->tried = counts.tried;
    info->served = counts.served;
    return {};
  });
}

int isthmus_no_wait_swap(int mode) noexcept {
  return std::exchange(isthmus::no_wait, std::clamp(mode, 0, 2));
}

isthmus_status_t isthmus_oom_callback_add(isthmus_oom_function_t function,
                                          isthmus_owner_t raw_owner,
                                          isthmus_oom_callback_t** oom_callback) noexcept {
  isthmus::Owner owner{raw_owner};  // released in any case
  return driver_entry(ISTHMUS_NEEDS(function, oom_callback), [&]() -> Result<void> {
    auto callback = make_ref<isthmus::OomCallback>(function, std::move(owner));
    process_oom_callbacks().add(callback);
    return return_handle(Result<Ref<isthmus::OomCallback>>{std::move(callback)}, oom_callback);
  });
}

// Does nothing in a forked child: the threads that run callbacks do not exist there, and no pool
// calls them.
void isthmus_oom_callback_remove(isthmus_oom_callback_t* oom_callback, int wait) noexcept {
  if (oom_callback != nullptr && !os::is_forked_child()) {
    process_oom_callbacks().remove(*object(oom_callback), wait != 0);
    object(oom_callback)->release();
  }
}
