#pragma once
// Releases free memory of the process's pools, and unused memory of adaptors, after a driver
// refused a request.
//
// A pool keeps what is freed, so a driver may have no memory while none is in use. Every request
// that a driver refuses has all pools of that memory give back what they have free: a pool's own
// and a request to the driver without one, by way of other resources too. What resources such as
// arenas keep is released where that does not suffice, since they get it back in large chunks only.

#include <cstddef>

#include "core/tls.hpp"
#include "memory/default_pools.hpp"
#include "memory/memory_resource.hpp"
#include "memory/pool_list.hpp"
#include "memory/pressure.hpp"
#include "os/futex.hpp"

namespace isthmus {

// All pools that somebody refers to. Never destroyed; safe for threads.
[[nodiscard]] pool_list& process_pools() noexcept;

// How often a driver, or a resource of the program's, had no memory for this thread: differs where
// a refusal was theirs, and not that of a limit which other pools' memory does not change.
ISTHMUS_TLS_MODEL inline thread_local constinit std::uint64_t driver_refusals = 0;
// Of the last of these: a resource that cuts chunks requests more than its caller does. 0: unknown.
ISTHMUS_TLS_MODEL inline thread_local constinit std::size_t driver_refused_bytes = 0;

struct driver_shortage {
  device& where;
  usm_kind kind;
  std::size_t nbytes;
  const pool* asker = nullptr;  // which gives back nothing; null: no pool
  // Of those alone whose memory is the driver's own: the locks of other resources may be held.
  bool plain_only = true;
};

// In the order in which these are tried: so much of what pools have free as is missing, if they
// have as much; all that pools have free; also what other resources keep unused.
enum class releases : std::uint8_t { missing, pools, everything };
// Bytes given back, some perhaps to the asker or twice: 0 if none were. Calls the driver: outside
// all locks but those of resources, and then only for memory that is the driver's own.
std::size_t release_unused(const driver_shortage& of, releases which) noexcept;
// The same after the work has ended that freed memory waits for, or at `until`. CALLBACK where the
// thread's interrupt function ended the wait.
[[nodiscard]] result<std::size_t> trim_after_work(const driver_shortage& of,
                                                  const os::deadline& until) noexcept;

template <class Value>
[[nodiscard]] bool is_short(const result<Value>& of) noexcept {
  return !of && of.failure().code() == ISTHMUS_ERROR_OUT_OF_MEMORY;
}

// `refused`, or what `retry` gives where something was given back. That may lie in pieces that are
// too small, or be taken by another thread: then all of it goes.
template <class Retry>
[[nodiscard]] auto with_other_pools(const driver_shortage& of, Retry&& retry,
                                    decltype(retry()) refused) -> decltype(retry()) {
  for (const auto which : {releases::missing, releases::pools, releases::everything}) {
    if (is_short(refused) && release_unused(of, which) != 0) {
      refused = retry();
    }
  }
  return refused;
}

// For a request of a caller's that was refused, `refusals` being their number before it: those
// whose memory is another resource's give back too, but for a caller that such a resource calls,
// and what work still uses is waited for, a second at most, where no pool was asked, which waits
// itself. Pre: no lock of the library's is held.
template <class Retry>
[[nodiscard]] auto with_all_pools(driver_shortage of, std::uint64_t refusals, Retry&& retry,
                                  decltype(retry()) refused) -> decltype(retry()) {
  constexpr std::int64_t k_longest_wait_ns = 1'000'000'000;
  if (!is_short(refused) || driver_refusals == refusals || no_wait != 0 || in_continuation()) {
    return refused;
  }
  of.plain_only = driver_serves_thread::is_on();
  refused = with_other_pools(of, retry, std::move(refused));
  if (!is_short(refused) || of.asker != nullptr) {
    return refused;
  }
  auto given = trim_after_work(of, os::deadline_after(k_longest_wait_ns));
  ISTHMUS_TRY(given);
  return *given != 0 ? retry() : std::move(refused);
}

}  // namespace isthmus
