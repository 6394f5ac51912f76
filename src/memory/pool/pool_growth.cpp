// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/pool_growth.hpp"

#include "memory/base/oom_recovery.hpp"

namespace isthmus {

// Calls `grow`. If the budget refuses, makes the other pools of the budget release free memory, and
// retries. It retries several times, since another pool may take the released memory first, but not
// indefinitely, since those pools may grow as fast as they release.
template <class Grow>
auto PoolGrowth::with_budget_pools(std::size_t needed, Grow&& grow) -> decltype(grow()) {
  constexpr int k_max_attempts = 4;
  auto* const shared = source_.shared();
  for (int attempt = 1;; ++attempt) {
    const auto refusals = shared == nullptr ? 0 : shared->refusals();
    auto grown = grow();
    if (!is_out_of_memory(grown) || shared == nullptr || attempt == k_max_attempts ||
        shared->refusals() == refusals || !shared->make_room(pool_, needed)) {
      return grown;
    }
  }
}

Result<void> PoolGrowth::grow_initially(std::size_t nbytes) {
  ISTHMUS_TRY(source_.fits(nbytes));
  const AllocationRequest request{pool_.kind(), nbytes};
  OomRecovery recovery{pool_.device(), request, nullptr, &pool_};
  auto grown = recovery.allocate(
      [&] { return with_budget_pools(nbytes, [&] { return growth_.grow_by(nbytes); }); });
  return !is_out_of_memory(grown) ? grown
                                  : fail(ISTHMUS_ERROR_OUT_OF_MEMORY, "{}. To do: {}",
                                         grown.failure().message(), source_.remedy(nbytes, 0));
}

Result<RegionHeap::PageRun> PoolGrowth::grow(const WantedRun& wanted) {
  const auto& window = trim_.window();
  if (window.is_enabled() && no_wait == 0) {
    trim_.wait_for_collection();
    if (const auto found = regions_.allocate(wanted.count, wanted.alignment, wanted.entry,
                                             RegionHeap::Cut::sparing_idle);
        found.count != 0) {
      return found;
    }
  }
  trim_.decay(os::Clock::now());
  trim_.shrink(wanted.run_bytes());
  auto grown = growth_.grow(wanted.count, wanted.alignment, wanted.entry);
  if (window.is_enabled()) {
    DecayingPools::only().schedule(window);
  }
  return grown;
}

Result<RegionHeap::PageRun> PoolGrowth::grow_with_budget_pools(const WantedRun& wanted) {
  return with_budget_pools(wanted.run_bytes(), [&] { return grow(wanted); });
}

}  // namespace isthmus
