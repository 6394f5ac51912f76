// SPDX-License-Identifier: Apache-2.0
#pragma once
// Releases free memory of the process's pools, and unused memory of adaptors, after a driver
// refused a request.
//
// Pools cache freed memory, so a driver may be out of memory while no memory is in use. Whenever a
// driver refuses a request, all pools whose memory can serve it return their free memory. This
// applies to requests of pools, to direct requests, and to requests through other resources. If
// that does not suffice, unused memory of adaptors such as arenas is released too. It is released
// last, because adaptors can obtain it again only in large chunks.

#include <cstddef>

#include "core/tls.hpp"
#include "memory/base/memory_resource.hpp"
#include "memory/base/pool_list.hpp"
#include "os/futex.hpp"

namespace isthmus {

// All pools of the process that are referenced. Never destroyed; thread-safe.
[[nodiscard]] PoolList& process_pools() noexcept;

// The number of requests of this thread that a driver, or a resource of the program, refused for
// lack of memory. A caller compares two values to distinguish such a refusal from one by a limit,
// against which releasing memory of other pools does not help.
ISTHMUS_TLS_MODEL inline thread_local constinit std::uint64_t driver_refusals = 0;
// The size of the last of these requests. It may exceed that of the caller's request, since a
// resource that sub-allocates requests larger chunks. 0: unknown.
ISTHMUS_TLS_MODEL inline thread_local constinit std::size_t driver_refused_bytes = 0;

struct DriverShortage {
  Device& device;
  UsmKind kind;
  std::size_t nbytes;
  // The requesting pool, which is not trimmed; null: no pool.
  const MemoryResource* requester = nullptr;
  // Release only memory of resources for which `is_driver_backed` is true, since the caller may
  // hold locks of other resources.
  bool driver_backed_only = true;
};

// The memory to release, in the order of the attempts. `missing`: only as much of the pools' free
// memory as the request lacks. `pools`: all free memory of the pools. `everything`: also unused
// memory of adaptors.
enum class Releases : std::uint8_t { missing, pools, everything };
// Returns the number of bytes released. Some of these may have been released to the requesting
// pool, or be counted twice. Calls the driver, so the caller must hold no lock, except locks of
// resources if `shortage.driver_backed_only` is set.
std::size_t release_unused(const DriverShortage& shortage, Releases releases) noexcept;
// Waits, at most until `until`, for unfinished work that uses freed memory, then releases all
// unused memory. Fails with CALLBACK if the thread's interrupt function ended the wait.
[[nodiscard]] Result<std::size_t> trim_after_work(const DriverShortage& shortage,
                                                  const os::Deadline& until) noexcept;

// Returns `refused` if nothing could be released, else the result of `retry`. The released memory
// may be in pieces that are too small, or another thread may allocate it. Therefore more is
// released as long as `retry` fails.
template <class Retry>
[[nodiscard]] auto with_other_pools(const DriverShortage& shortage, Retry&& retry,
                                    decltype(retry()) refused) -> decltype(retry()) {
  for (const auto releases : {Releases::missing, Releases::pools, Releases::everything}) {
    if (is_out_of_memory(refused) && release_unused(shortage, releases) != 0) {
      refused = retry();
    }
  }
  return refused;
}

}  // namespace isthmus
