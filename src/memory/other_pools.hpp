// SPDX-License-Identifier: Apache-2.0
#pragma once
// Releases free memory of the process's pools, and unused memory of adaptors, after a driver
// refused a request.
//
// Pools cache freed memory, so a driver may be out of memory while none is in use. Whenever a
// driver refuses a request, all pools of that memory return their free memory: for requests of
// pools as for direct ones, also through other resources. If that does not suffice, memory that
// adaptors such as arenas retain unused is released too. It comes last because adaptors obtain it
// again in large chunks only.

#include <cstddef>

#include "core/tls.hpp"
#include "memory/default_pools.hpp"
#include "memory/memory_resource.hpp"
#include "memory/oom_stages.hpp"
#include "memory/pool_list.hpp"
#include "os/futex.hpp"

namespace isthmus {

// All pools of the process that are referenced. Never destroyed; thread-safe.
[[nodiscard]] PoolList& process_pools() noexcept;

// Requests of this thread that a driver, or a resource of the program, refused for lack of memory.
// A caller compares two values to distinguish such a refusal from that of a limit, which releasing
// other pools' memory does not change.
ISTHMUS_TLS_MODEL inline thread_local constinit std::uint64_t driver_refusals = 0;
// The size of the last of these requests: a resource that sub-allocates requests larger chunks than
// its caller does. 0: unknown.
ISTHMUS_TLS_MODEL inline thread_local constinit std::size_t driver_refused_bytes = 0;

struct DriverShortage {
  Device& device;
  UsmKind kind;
  std::size_t nbytes;
  const Pool* requester = nullptr;  // the requesting pool, which is not trimmed; null: no pool
  // Release only memory of resources that are `is_driver_backed`, since the caller may hold locks
  // of other resources.
  bool driver_owned_only = true;
};

// What is released, in the order in which it is tried: as much of the pools' free memory as is
// missing, if they have that much; all of the pools' free memory; also what adaptors retain unused.
enum class Releases : std::uint8_t { missing, pools, everything };
// Returns the bytes released, 0 if there were none; some may have been released to the requesting
// pool, or be counted twice. Calls the driver, so the caller holds no lock, except those of
// resources if `shortage.driver_owned_only` is set.
std::size_t release_unused(const DriverShortage& shortage, Releases releases) noexcept;
// Waits, until `until` at most, for the work that freed memory still waits for, then releases
// everything unused. CALLBACK if the thread's interrupt function ended the wait.
[[nodiscard]] Result<std::size_t> trim_after_work(const DriverShortage& shortage,
                                                  const os::Deadline& until) noexcept;

template <class Value>
[[nodiscard]] bool is_short(const Result<Value>& result) noexcept {
  return !result && result.failure().code() == ISTHMUS_ERROR_OUT_OF_MEMORY;
}

// Returns `refused` if nothing could be released, else the result of `retry`. The released memory
// may be in pieces that are too small, or be taken by another thread, so more is released as long
// as `retry` fails.
template <class Retry>
[[nodiscard]] auto with_other_pools(const DriverShortage& shortage, Retry&& retry,
                                    decltype(retry()) refused) -> decltype(retry()) {
  for (const auto releases : {Releases::missing, Releases::pools, Releases::everything}) {
    if (is_short(refused) && release_unused(shortage, releases) != 0) {
      refused = retry();
    }
  }
  return refused;
}

// The same for a refused request of a caller; `refusals` is the value of `driver_refusals` before
// it. Also releases memory that comes from other resources, unless the call comes from within such
// a resource. If no pool served the request (pools wait themselves), it waits at most one second
// for work that still uses freed memory. Pre: the caller holds no lock of the library.
template <class Retry>
[[nodiscard]] auto with_all_pools(DriverShortage shortage, std::uint64_t refusals, Retry&& retry,
                                  decltype(retry()) refused) -> decltype(retry()) {
  constexpr std::int64_t k_max_wait_ns = 1'000'000'000;
  if (!is_short(refused) || driver_refusals == refusals || no_wait != 0 || in_continuation()) {
    return refused;
  }
  shortage.driver_owned_only = DriverServesThread::is_active();
  refused = with_other_pools(shortage, retry, std::move(refused));
  if (!is_short(refused) || shortage.requester != nullptr) {
    return refused;
  }
  auto released = trim_after_work(shortage, os::deadline_after(k_max_wait_ns));
  ISTHMUS_TRY(released);
  return *released != 0 ? retry() : std::move(refused);
}

}  // namespace isthmus
