// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is tried before a caller's request fails for lack of memory, outside of a pool. Buffers,
// bare pointers and the initial memory of pools use it. The stages inside a pool are in
// pool_oom_stages.cpp; a request to a pool has been through those before, and each repetition goes
// through them again.
//
//   1. If a driver refused the request: pools return free memory, and adaptors unused memory
//      (other_pools.hpp). If the request was not to a pool, this then waits for unfinished work
//      that uses freed memory.
//   2. Wait for pending releases (deferred_release.hpp). A program that frees memory faster than
//      the library's thread releases it thus does not fail. Skipped inside an allocation function
//      of the program, which may hold a lock that the release needs.
//   3. Call the program's out-of-memory callbacks (oom_callbacks.hpp).
//
// The request is repeated whenever a step has released memory. Each wait takes at most one second.
// Nothing is tried where a thread must not wait (`no_wait`, or in a continuation). Steps 2 and 3
// are skipped if a pool is upstream, since its stages include both, and for requests above the
// device's largest allocation.

#include <cstddef>
#include <cstdint>
#include <utility>

#include "memory/base/driver_serves_thread.hpp"
#include "memory/base/memory_resource.hpp"
#include "memory/base/oom_stages.hpp"
#include "memory/base/other_pools.hpp"
#include "os/futex.hpp"

namespace isthmus {

// Used by one thread, for one request. The thread must hold no lock of the library, except locks
// of resources inside an allocation function of the program (`DriverServesThread`).
class OomRecovery {
 public:
  // Create this before the first attempt. `resource` serves the request; null: the driver.
  OomRecovery(Device& device, const AllocationRequest& request, MemoryResource* resource) noexcept
      : OomRecovery{device, request, resource,
                    resource != nullptr && resource->is_pool() ? resource : nullptr} {}
  // `pool` is the pool that serves or makes the request; null: none. It trims itself in its own
  // stages.
  OomRecovery(Device& device, const AllocationRequest& request, MemoryResource* resource,
              const MemoryResource* pool) noexcept
      : device_{device},
        request_{request},
        resource_{resource},
        pool_{pool},
        released_bytes_{device.released_bytes(request.kind)} {}

  // Returns the result of `allocate`, which is called again as long as it fails for lack of memory
  // and a step has released memory. CALLBACK if the thread's interrupt function ended a wait.
  template <class Allocate>
  [[nodiscard]] auto allocate(Allocate&& allocate) -> decltype(allocate()) {
    auto memory = allocate();
    if (is_out_of_memory(memory)) [[unlikely]] {
      memory = recover(allocate, std::move(memory));
    }
    return memory;
  }

 private:
  template <class Allocate>
  [[nodiscard]] auto recover(Allocate& allocate,
                             decltype(allocate()) refused) -> decltype(allocate()) {
    refused = release_pools(allocate, std::move(refused));
    if (is_out_of_memory(refused) && may_retry_after_release() &&
        !DriverServesThread::is_active()) {
      refused = retry_after_releases(allocate, std::move(refused));
    }
    if (is_out_of_memory(refused) && may_retry_after_release() && call_callbacks()) {
      refused = allocate();
    }
    return refused;
  }

  template <class Allocate>
  [[nodiscard]] auto release_pools(Allocate& allocate,
                                   decltype(allocate()) refused) -> decltype(allocate()) {
    if (!driver_refused() || no_wait != 0 || in_continuation()) {
      return refused;
    }
    const DriverShortage shortage{device_, request_.kind, request_.nbytes, pool_,
                                  DriverServesThread::is_active()};
    refused = with_other_pools(shortage, allocate, std::move(refused));
    if (!is_out_of_memory(refused) || pool_ != nullptr) {
      return refused;
    }
    auto released = trim_after_work(shortage, os::deadline_after(k_max_wait_ns));
    ISTHMUS_TRY(released);
    return *released != 0 ? allocate() : std::move(refused);
  }

  template <class Allocate>
  [[nodiscard]] auto retry_after_releases(Allocate& allocate,
                                          decltype(allocate()) refused) -> decltype(allocate()) {
    const auto deadline = os::deadline_after(k_max_wait_ns);
    for (bool is_last = false; !is_last && is_out_of_memory(refused);) {
      auto released = wait_for_releases(deadline);
      ISTHMUS_TRY(released);
      if (!*released) {
        break;
      }
      is_last = os::Clock::now() >= *deadline;
      refused = allocate();
    }
    return refused;
  }

  // Whether a driver refused the request, not a limit: other memory helps only then.
  [[nodiscard]] bool driver_refused() const noexcept { return driver_refusals != refusals_before_; }
  // False above the largest allocation, and where a pool or the thread rules out waiting.
  [[nodiscard]] bool may_retry_after_release() const noexcept;
  // Waits until a library thread has released as many bytes as requested since the last attempt, or
  // has completed all pending releases of the device and kind. Returns whether any were released.
  [[nodiscard]] Result<bool> wait_for_releases(const os::Deadline& deadline) noexcept;
  // Returns whether any callback reports that it released memory. The callbacks receive the size of
  // the request or, if larger, the size that the driver refused last: a resource's chunk may be
  // larger than the request.
  [[nodiscard]] bool call_callbacks() const noexcept;

  static constexpr std::int64_t k_max_wait_ns = 1'000'000'000;  // a pool has the same default

  Device& device_;
  const AllocationRequest request_;
  MemoryResource* const resource_;
  const MemoryResource* const pool_;
  const std::uint64_t refusals_before_ = driver_refusals;
  std::uint64_t released_bytes_;  // by library threads, until the last attempt
};

}  // namespace isthmus
