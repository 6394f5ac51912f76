// SPDX-License-Identifier: Apache-2.0
#pragma once
// The error of a request for which a pool found no memory: its message, and the state of the pool
// that `shortage_of` returns (snapshot.hpp).

#include <cstddef>

#include "memory/base/oom_callbacks.hpp"
#include "memory/base/pool_list.hpp"
#include "memory/base/snapshot.hpp"
#include "memory/pool/region_source.hpp"

namespace isthmus {

// A request that failed, and what was tried for it.
struct RefusedRequest {
  std::size_t nbytes;     // of the caller's request
  std::size_t run_bytes;  // of the page run that was needed last
  unsigned tried = 0;     // out-of-memory stages: 1 << OomStage
  std::size_t trimmed = 0;
  OomCallbacks::Outcome callbacks = {};
  Error refusal = Error::no_memory();  // of the last attempt
};

// OUT_OF_MEMORY, with the advice that fits `snapshot`, the state of the pool. Stores the shortage
// for this thread. Thread-safe.
[[nodiscard]] Error refuse(const RefusedRequest& request, const ListedPool& pool,
                           const RegionSource& source, const Snapshot& snapshot);

}  // namespace isthmus
