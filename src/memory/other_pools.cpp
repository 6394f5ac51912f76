// SPDX-License-Identifier: Apache-2.0
#include "memory/other_pools.hpp"

#include <algorithm>
#include <new>

#include "core/never_destroyed.hpp"
#include "memory/adaptors/caching_adaptor.hpp"
#include "memory/host_memory.hpp"
#include "memory/pool.hpp"
#include "os/available_memory.hpp"

namespace isthmus {
namespace {

struct candidate {
  std::size_t free_bytes;
  ref<pool> which;
};

// Whether memory that `one` releases can serve the request: host memory is shared by the process,
// all other memory belongs to one device.
bool can_serve(const driver_shortage& of, const memory_resource& one) noexcept {
  const bool from_host = host_memory::holds(of.where, of.kind);
  return (from_host && host_memory::holds(one.where(), one.kind())) || &one.where() == &of.where;
}

bool may_call(const driver_shortage& of, const memory_resource& one) noexcept {
  return one.is_drivers_own() || !of.plain_only;
}

// Pools of the same kind first; among these, the ones with the most free memory first. Throws
// std::bad_alloc.
std::vector<candidate> candidates(const driver_shortage& of) {
  std::vector<candidate> found;
  const auto fits = [&](const pool& one) {
    return &one != of.asker && may_call(of, one) && can_serve(of, one);
  };
  for (auto& each : process_pools().alive(fits)) {
    const auto free_bytes = each->usage().free_bytes;
    found.push_back({free_bytes, std::move(each)});
  }
  std::sort(found.begin(), found.end(), [&](const candidate& a, const candidate& b) {
    const bool first = a.which->kind() == of.kind;
    const bool second = b.which->kind() == of.kind;
    return first != second ? first : a.free_bytes > b.free_bytes;
  });
  return found;
}

// A request that exceeds the whole memory of both the device and the host must not cost the pools
// their caches. Throws std::bad_alloc.
bool can_ever_be_served(const driver_shortage& of) {
  return of.nbytes <= of.where.properties().memory_bytes ||
         of.nbytes <= os::physical_memory().total;
}

std::size_t trim_one(const driver_shortage& of, pool& one, std::size_t keep) noexcept {
  return of.plain_only ? one.trim_free(keep) : one.trim(keep);
}

// One after another, an adaptor before those that it allocates from.
template <class Visit>
void visit_caching_adaptors(const driver_shortage& of, Visit&& visit) {
  const auto fits = [&](const caching_adaptor& one) {
    return may_call(of, one) && std::any_of(one.bases().begin(), one.bases().end(),
                                            [&](auto* each) { return can_serve(of, *each); });
  };
  auto& all = process_caching_adaptors();
  for (auto each = all.next(nullptr, fits); each; each = all.next(each.get(), fits)) {
    visit(*each);
  }
}

// Throws std::bad_alloc.
std::size_t trim_pools(const driver_shortage& of, bool all) {
  std::size_t given = 0;
  for (const auto& each : candidates(of)) {
    if (all || given < of.nbytes) {
      const auto held = each.which->usage().held_bytes;
      const auto missing = of.nbytes - std::min(given, of.nbytes);
      given += trim_one(of, *each.which, all || held < missing ? 0 : held - missing);
    }
  }
  return given;
}

// The work that free memory waits for. Throws std::bad_alloc.
std::vector<ref<event>> running_work(const driver_shortage& of) {
  std::vector<ref<event>> running;
  const auto add = [&](std::vector<ref<event>> more) {
    running.insert(running.end(), more.begin(), more.end());
  };
  visit_caching_adaptors(of, [&](caching_adaptor& each) { add(each.running()); });
  for (const auto& each : candidates(of)) {
    add(each.which->slots().running());
  }
  return running;
}

}  // namespace

pool_list& process_pools() noexcept {
  static never_destroyed<pool_list> only;
  return *only;
}

// Pools last, because adaptors may release memory to them.
std::size_t release_unused(const driver_shortage& of, releases which) noexcept try {
  if (!can_ever_be_served(of)) {
    return 0;
  }
  std::size_t given = 0;
  if (which == releases::everything) {
    visit_caching_adaptors(of, [&](caching_adaptor& each) { given += each.release_unused(); });
  }
  return given + trim_pools(of, which != releases::missing);
} catch (const std::bad_alloc&) {
  return 0;
}

result<std::size_t> trim_after_work(const driver_shortage& of, const os::deadline& until) noexcept
    try {
  if (!can_ever_be_served(of)) {
    return std::size_t{0};
  }
  for (const auto& each : running_work(of)) {
    ISTHMUS_TRY(each->wait_interruptibly(until));
  }
  // The continuation that marks a fence's tickets as passed may still have to run on another
  // thread. `running_work` does that for every fence that has completed.
  static_cast<void>(running_work(of));
  return release_unused(of, releases::everything);
} catch (const std::bad_alloc&) {
  return std::size_t{0};
}

}  // namespace isthmus
