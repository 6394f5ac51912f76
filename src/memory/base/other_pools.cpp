// SPDX-License-Identifier: Apache-2.0
#include "memory/base/other_pools.hpp"

#include <algorithm>
#include <new>

#include "core/never_destroyed.hpp"
#include "memory/base/host_memory.hpp"
#include "memory/base/memory_cache.hpp"
#include "os/available_memory.hpp"

namespace isthmus {
namespace {

struct Candidate {
  std::size_t free_bytes;
  Ref<ListedPool> pool;
};

// Whether memory that `resource` releases can serve the request: host memory is shared by the
// process, all other memory belongs to one device.
bool can_serve(const DriverShortage& shortage, const MemoryResource& resource) noexcept {
  const bool on_host = HostMemory::is_host_memory(shortage.device, shortage.kind);
  return (on_host && HostMemory::is_host_memory(resource.device(), resource.kind())) ||
         &resource.device() == &shortage.device;
}

bool may_call(const DriverShortage& shortage, const MemoryResource& resource) noexcept {
  return resource.is_driver_backed() || !shortage.driver_backed_only;
}

// Pools of the same kind first; among these, the ones with the most free memory first. Throws
// std::bad_alloc.
std::vector<Candidate> candidates(const DriverShortage& shortage) {
  std::vector<Candidate> found;
  const auto fits = [&](const ListedPool& pool) {
    return &pool != shortage.requester && may_call(shortage, pool) && can_serve(shortage, pool);
  };
  for (auto& each : process_pools().alive(fits)) {
    const auto free_bytes = each->usage().free_bytes;
    found.push_back({free_bytes, std::move(each)});
  }
  std::sort(found.begin(), found.end(), [&](const Candidate& a, const Candidate& b) {
    const bool first = a.pool->kind() == shortage.kind;
    const bool second = b.pool->kind() == shortage.kind;
    return first != second ? first : a.free_bytes > b.free_bytes;
  });
  return found;
}

// Excludes requests that exceed the total memory of both the device and the host, which must not
// empty the caches of the pools. Throws std::bad_alloc.
bool can_ever_be_served(const DriverShortage& shortage) {
  return shortage.nbytes <= shortage.device.properties().memory_bytes ||
         shortage.nbytes <= os::physical_memory().total;
}

std::size_t trim_pool(const DriverShortage& shortage, ListedPool& pool, std::size_t keep) noexcept {
  return shortage.driver_backed_only ? pool.trim_free(keep) : pool.trim(keep);
}

// Visits the adaptors one after another, each before those that it allocates from.
template <class Visit>
void visit_memory_caches(const DriverShortage& shortage, Visit&& visit) {
  const auto fits = [&](const MemoryCache& cache) {
    return may_call(shortage, cache.owner()) &&
           std::any_of(cache.bases().begin(), cache.bases().end(),
                       [&](auto* each) { return can_serve(shortage, *each); });
  };
  auto& all = process_memory_caches();
  for (auto each = all.next(nullptr, fits); each.cache != nullptr;
       each = all.next(each.cache, fits)) {
    visit(*each.cache);
  }
}

// Throws std::bad_alloc.
std::size_t trim_pools(const DriverShortage& shortage, bool all) {
  std::size_t released = 0;
  for (const auto& each : candidates(shortage)) {
    if (all || released < shortage.nbytes) {
      const auto held = each.pool->usage().held_bytes;
      const auto missing = shortage.nbytes - std::min(released, shortage.nbytes);
      released += trim_pool(shortage, *each.pool, all || held < missing ? 0 : held - missing);
    }
  }
  return released;
}

// Returns the unfinished work that uses freed memory. Throws std::bad_alloc.
std::vector<Ref<Event>> running_work(const DriverShortage& shortage) {
  std::vector<Ref<Event>> running;
  const auto add = [&](std::vector<Ref<Event>> more) {
    running.insert(running.end(), more.begin(), more.end());
  };
  visit_memory_caches(shortage, [&](MemoryCache& each) { add(each.running()); });
  for (const auto& each : candidates(shortage)) {
    add(each.pool->running());
  }
  return running;
}

}  // namespace

PoolList& process_pools() noexcept {
  static NeverDestroyed<PoolList> only;
  return *only;
}

// Pools are trimmed last, because adaptors may release memory to them.
std::size_t release_unused(const DriverShortage& shortage, Releases releases) noexcept try {
  if (!can_ever_be_served(shortage)) {
    return 0;
  }
  std::size_t released = 0;
  if (releases == Releases::everything) {
    visit_memory_caches(shortage, [&](MemoryCache& each) { released += each.release_unused(); });
  }
  return released + trim_pools(shortage, releases != Releases::missing);
} catch (const std::bad_alloc&) {
  return 0;
}

Result<std::size_t> trim_after_work(const DriverShortage& shortage,
                                    const os::Deadline& until) noexcept try {
  if (!can_ever_be_served(shortage)) {
    return std::size_t{0};
  }
  for (const auto& each : running_work(shortage)) {
    ISTHMUS_TRY(each->wait_interruptibly(until));
  }
  // The continuation that marks the tickets of a completed fence as passed may not have run yet on
  // another thread. `running_work` does the same for every completed fence.
  static_cast<void>(running_work(shortage));
  return release_unused(shortage, Releases::everything);
} catch (const std::bad_alloc&) {
  return std::size_t{0};
}

}  // namespace isthmus
