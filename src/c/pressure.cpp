// SPDX-License-Identifier: Apache-2.0
// Behaviour of pools when memory is short: snapshots, out-of-memory stages (rungs) and
// out-of-memory callbacks (reclaimers).

#include <algorithm>
#include <cstddef>

#include "c/common.hpp"
#include "memory/holders.hpp"
#include "memory/pool.hpp"
#include "os/process.hpp"

using namespace isthmus;
using namespace isthmus::c;

namespace {

Result<Pool*> pool_of(isthmus_resource_t* resource) {
  ISTHMUS_NEEDS(resource);
  if (os::is_forked_child()) {
    return refuse_child();
  }
  auto* const found = object(resource)->as_pool();
  if (found == nullptr) {
    return fail(ISTHMUS_ERROR_UNSUPPORTED, "the resource of {} memory on {} is not a pool",
                kind_name(object(resource)->kind()),
                object(resource)->device().properties().filter);
  }
  return found;
}

Result<void> write(const Snapshot& seen, isthmus_snapshot_t& out) {
  constexpr auto k_first_size = offsetof(isthmus_snapshot_t, holder_count);
  if (out.struct_size < k_first_size) {
    return is_too_small("snapshot", out.struct_size, k_first_size);
  }
  out.held_bytes = seen.held;
  out.live_bytes = seen.live;
  out.cached_bytes = seen.cached;
  out.waiting_bytes = seen.waiting;
  out.free_bytes = seen.free;
  out.largest_free_bytes = seen.largest_request;
  if (out.struct_size >= offsetof(isthmus_snapshot_t, device)) {
    out.holder_count = seen.holder_count;
    std::transform(
        seen.holders.begin(), seen.holders.end(), out.holders,
        [](const Holder& each) -> isthmus_holder_t { return {each.tag, each.bytes, each.count}; });
  }
  return {};
}

// `shortage` is null if no request failed.
void write_request(const Shortage* shortage, isthmus_snapshot_t& out) noexcept {
  if (out.struct_size >= sizeof out) {
    out.device = shortage != nullptr ? shortage->device.data() : nullptr;
    out.kind = shortage != nullptr ? shortage->kind : ISTHMUS_KIND_UNKNOWN;
    out.rungs = shortage != nullptr ? shortage->rungs : 0;
    out.requested_bytes = shortage != nullptr ? shortage->requested : 0;
    out.advice = shortage != nullptr ? shortage->advice : nullptr;
  }
}

}  // namespace

isthmus_status_t isthmus_resource_snapshot(isthmus_resource_t* resource,
                                           isthmus_snapshot_t* snapshot) noexcept {
  return guarded([&]() -> Result<void> {
    auto pool = pool_of(resource);
    ISTHMUS_TRY(pool);
    ISTHMUS_NEEDS(snapshot);
    auto seen = (*pool)->count_with_largest_request();
    find_holders(**pool, seen);
    ISTHMUS_TRY(write(seen, *snapshot));
    write_request(nullptr, *snapshot);
    return {};
  });
}

isthmus_status_t isthmus_error_snapshot(isthmus_snapshot_t* snapshot) noexcept {
  const auto* const found = shortage_of(last_failure());
  if (found == nullptr) {
    return ISTHMUS_ERROR_NOT_FOUND;  // the last error stays the one that the caller queries
  }
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(snapshot);
    ISTHMUS_TRY(write(found->seen, *snapshot));
    write_request(found, *snapshot);
    return {};
  });
}

const char* isthmus_rung_name(isthmus_rung_t rung) noexcept {
  return rung < 0 || static_cast<std::size_t>(rung) >= k_rungs
             ? nullptr
             : rung_name(static_cast<isthmus::OomStage>(rung));
}

isthmus_status_t isthmus_resource_rung(isthmus_resource_t* resource, isthmus_rung_t rung,
                                       uint64_t* tried, uint64_t* served) noexcept {
  return guarded([&]() -> Result<void> {
    auto pool = pool_of(resource);
    ISTHMUS_TRY(pool);
    if (isthmus_rung_name(rung) == nullptr) {
      return fail(ISTHMUS_ERROR_NOT_FOUND, "out-of-memory stage {} does not exist: use 0 to {}",
                  rung, k_rungs - 1);
    }
    const auto counts = (*pool)->under_pressure().of(static_cast<isthmus::OomStage>(rung));
    if (tried != nullptr) {
      *tried = counts.tried;
    }
    if (served != nullptr) {
      *served = counts.served;
    }
    return {};
  });
}

int isthmus_no_wait_swap(int wanted) noexcept {
  return std::exchange(isthmus::no_wait, std::clamp(wanted, 0, 2));
}

isthmus_status_t isthmus_reclaimer_add(isthmus_reclaim_t function, isthmus_owner_t owner,
                                       isthmus_reclaimer_t** reclaimer) noexcept {
  isthmus::Owner user{owner};  // released in any case
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(function);
    ISTHMUS_NEEDS(reclaimer);
    if (os::is_forked_child()) {
      return refuse_child();
    }
    auto made = make_ref<isthmus::OomCallback>(function, std::move(user));
    process_reclaimers().add(made);
    return give(Result<Ref<isthmus::OomCallback>>{std::move(made)}, reclaimer);
  });
}

// Does nothing in a forked child: the threads that run callbacks do not exist there, and no pool
// calls them.
void isthmus_reclaimer_remove(isthmus_reclaimer_t* reclaimer, int wait) noexcept {
  if (reclaimer != nullptr && !os::is_forked_child()) {
    process_reclaimers().remove(*object(reclaimer), wait != 0);
    object(reclaimer)->release();
  }
}
