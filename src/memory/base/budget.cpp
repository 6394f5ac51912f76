// SPDX-License-Identifier: Apache-2.0
#include "memory/base/budget.hpp"

#include <algorithm>
#include <new>
#include <string>

#include "core/sizes.hpp"
#include "core/text.hpp"

namespace isthmus {

bool Budget::claim(std::size_t nbytes) noexcept {
  auto held = held_.load(std::memory_order_relaxed);
  do {
    if (nbytes > limit_ || held > limit_ - nbytes) {
      refusals_.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
  } while (!held_.compare_exchange_weak(held, held + nbytes, std::memory_order_relaxed));
  auto peak = peak_.load(std::memory_order_relaxed);
  while (peak < held + nbytes &&
         !peak_.compare_exchange_weak(peak, held + nbytes, std::memory_order_relaxed)) {
  }
  return true;
}

void Budget::unclaim(std::size_t nbytes) noexcept {
  held_.fetch_sub(nbytes, std::memory_order_relaxed);
}

// The difference between the budget's held bytes and those of its members belongs to pools that
// were released while their memory was still in use.
Error Budget::refusal(const Device& device, UsmKind kind, std::size_t nbytes) {
  const auto held = held_.load(std::memory_order_relaxed);
  std::size_t of_members = 0;
  std::string holders;
  members_.for_each([&](ListedPool& each) {
    const auto usage = each.usage();
    of_members += usage.held_bytes;
    holders +=
        formatted("{}{} by a pool of {} memory on {} ({} of it free)", holders.empty() ? "" : ", ",
                  describe_bytes(usage.held_bytes), kind_name(each.kind()),
                  each.device().properties().filter, describe_bytes(usage.free_bytes));
  });
  if (held > of_members) {
    holders += formatted("{}{} by released pools, for work in flight or blocks in use",
                         holders.empty() ? "" : ", ", describe_bytes(held - of_members));
  }
  return fail(
      ISTHMUS_ERROR_OUT_OF_MEMORY,
      "a pool of {} memory on {} would need {} more, of a budget of {} of which {} are held: "
      "{}",
      kind_name(kind), device.properties().filter, describe_bytes(nbytes), describe_bytes(limit_),
      describe_bytes(held), holders);
}

// Trims the pools with the most free memory first. Pools return whole regions, so that one of them
// may return more than is missing.
bool Budget::make_room(const MemoryResource& requester, std::size_t nbytes) noexcept try {
  struct Candidate {
    std::size_t free_bytes;
    Ref<ListedPool> pool;
  };
  std::vector<Candidate> candidates;
  for (auto& each : members_.alive()) {
    if (each.get() != &requester) {
      candidates.push_back({each->usage().free_bytes, std::move(each)});
    }
  }
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.free_bytes > b.free_bytes; });
  std::size_t released = 0;
  for (const auto& each : candidates) {
    if (released < nbytes) {
      const auto held = each.pool->usage().held_bytes;
      const auto missing = nbytes - released;
      released += each.pool->trim(held > missing ? held - missing : 0);
    }
    if (released < nbytes) {
      released += each.pool->trim(0);
    }
  }
  released_.fetch_add(released, std::memory_order_relaxed);
  return released != 0;
} catch (const std::bad_alloc&) {
  return false;
}

Budget::State Budget::state() {
  State result;
  members_.for_each([&](ListedPool& each) {
    result.free_bytes += each.usage().free_bytes;
    ++result.pools;
  });
  result.limit_bytes = limit_;
  result.held_bytes = held_.load(std::memory_order_relaxed);
  result.peak_held_bytes = peak_.load(std::memory_order_relaxed);
  result.refusals = refusals_.load(std::memory_order_relaxed);
  result.released_bytes = released_.load(std::memory_order_relaxed);
  return result;
}

}  // namespace isthmus
