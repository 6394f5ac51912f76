// SPDX-License-Identifier: Apache-2.0
#pragma once
// The program's out-of-memory callbacks (`OomCallback`): called before a request for memory fails,
// to release what they can.

#include <isthmus/isthmus.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "core/owner.hpp"
#include "core/ref.hpp"
#include "memory/memory_resource.hpp"

namespace isthmus {

// One callback. It is called on the thread that requests memory, with no lock of the library held.
// Several threads may call it at once. It is never called from inside any callback. Thread-safe.
class OomCallback final : public RefCounted {
 public:
  // `user`'s object is passed to `function`, and released with the last reference.
  OomCallback(isthmus_oom_function_t function, Owner user) noexcept
      : function_{function}, user_{std::move(user)} {}

  // Calls it. Returns the bytes that it reports to have released; 0 once it is closed.
  [[nodiscard]] std::uint64_t call(const isthmus_oom_request_t& request) noexcept;
  // It is not called from here on. With `waits`, blocks until its calls have ended, but not inside
  // any callback: two that waited for one another would never return. The thread's interrupt
  // function may end that wait.
  void close(bool waits) noexcept;

 private:
  ~OomCallback() override = default;
  // Waits for the end of its calls. False if some still run at `until`.
  [[nodiscard]] bool calls_end(const os::Deadline& until) noexcept;

  const isthmus_oom_function_t function_;
  const Owner user_;
  std::mutex lock_;
  std::condition_variable ended_;
  unsigned running_ = 0;
  bool closed_ = false;
};

// The callbacks of the process. Never destroyed. Thread-safe.
class OomCallbacks {
 public:
  struct Outcome {
    std::size_t called = 0;   // callbacks called
    std::uint64_t bytes = 0;  // that they report to have released
  };
  // Throws std::bad_alloc.
  void add(Ref<OomCallback> callback);
  // Closes it too.
  void remove(OomCallback& callback, bool waits) noexcept;
  // Calls all callbacks in the order in which they were added; none from inside a callback.
  [[nodiscard]] Outcome call_all(const isthmus_oom_request_t& request) noexcept;

 private:
  struct Entry {
    std::uint64_t number = 0;
    Ref<OomCallback> callback;
  };
  // The first with a number above `last` and up to `newest`; an empty entry if there is none.
  [[nodiscard]] Entry next(std::uint64_t last, std::uint64_t newest) noexcept;
  [[nodiscard]] std::uint64_t newest() noexcept;

  std::mutex lock_;
  std::uint64_t last_number_ = 0;
  std::vector<Entry> all_;  // by number
};
[[nodiscard]] OomCallbacks& process_oom_callbacks() noexcept;

[[nodiscard]] isthmus_oom_request_t request_for(Device& device, UsmKind kind,
                                                std::size_t nbytes) noexcept;
// Whether the caller may wait for pending releases, or call the callbacks, after `refusal`. False
// for failures other than out of memory, for requests that never fit, if a pool is upstream (which
// does both in its own out-of-memory stages), and where neither is allowed (`no_wait` or in a
// continuation).
[[nodiscard]] bool may_retry_after_release(const Error& refusal, Device& device,
                                           const AllocationRequest& request,
                                           MemoryResource* resource) noexcept;
// Calls the callbacks, unless `may_retry_after_release` is false. Returns whether they report that
// they released anything, so that a new request to `resource` (null: the driver) is worthwhile.
// They receive the size of the request or, if larger, the size that a driver refused last: a
// resource's chunk may be larger than the request. `refusals` is the value of `driver_refusals`
// before the request; if it has not changed, no driver refused. Pre: the caller holds no lock of
// the library.
[[nodiscard]] bool call_oom_callbacks(const Error& refusal, std::uint64_t refusals, Device& device,
                                      const AllocationRequest& request,
                                      MemoryResource* resource) noexcept;

}  // namespace isthmus
