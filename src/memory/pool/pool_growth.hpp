// SPDX-License-Identifier: Apache-2.0
#pragma once
// Decides when a pool obtains more memory, and which memory it and other pools return before that.
// The memory itself comes from `RegionGrowth`.

#include <cstddef>

#include "memory/base/pool_list.hpp"
#include "memory/pool/pool_trim.hpp"
#include "memory/pool/region_growth.hpp"
#include "memory/pool/region_heap.hpp"
#include "memory/pool/wanted_run.hpp"

namespace isthmus {

// Thread-safe. Calls the driver or an upstream resource, so the caller holds no lock.
class PoolGrowth {
 public:
  // `pool` identifies the requester to the other pools of its budget. All references must outlive
  // the object.
  PoolGrowth(ListedPool& pool, RegionSource& source, RegionHeap& regions, RegionGrowth& growth,
             PoolTrim& trim) noexcept
      : pool_{pool}, source_{source}, regions_{regions}, growth_{growth}, trim_{trim} {}

  // Obtains the initial memory of the pool. If it is refused for lack of memory, recovers as for a
  // request outside of pools (`OomRecovery`). Errors as `RegionGrowth::grow_by`.
  [[nodiscard]] Result<void> grow_initially(std::size_t nbytes);
  // Allocates a run of `count` pages: from memory that has become free or, after decay and the soft
  // limit, from more memory. Errors as `RegionGrowth::grow`.
  [[nodiscard]] Result<RegionHeap::PageRun> grow(const WantedRun& wanted);
  // As `grow`. If the budget refuses, the other pools of the budget first return free memory.
  [[nodiscard]] Result<RegionHeap::PageRun> grow_with_budget_pools(const WantedRun& wanted);

 private:
  template <class Grow>
  [[nodiscard]] auto with_budget_pools(std::size_t needed, Grow&& grow) -> decltype(grow());

  ListedPool& pool_;
  RegionSource& source_;
  RegionHeap& regions_;
  RegionGrowth& growth_;
  PoolTrim& trim_;
};

}  // namespace isthmus
