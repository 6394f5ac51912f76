// SPDX-License-Identifier: Apache-2.0
#pragma once
// The program's out-of-memory callbacks (`OomCallback`): called before a request for memory fails,
// so that the program can release memory.

#include <isthmus/isthmus.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/mutex.hpp"
#include "core/owner.hpp"
#include "core/ref.hpp"
#include "core/thread_safety.hpp"
#include "memory/base/memory_resource.hpp"

namespace isthmus {

// One callback. It is called on the thread that requests memory, with no lock of the library held.
// Several threads may call it at once. It is never called from inside any callback. Thread-safe.
class OomCallback final : public RefCounted {
 public:
  // `user`'s object is passed to `function`, and released with the last reference.
  OomCallback(isthmus_oom_function_t function, Owner user) noexcept
      : function_{function}, user_{std::move(user)} {}

  // Calls the function. Returns the bytes that it reports as released; 0, without a call, after
  // `close`.
  [[nodiscard]] std::uint64_t call(const isthmus_oom_request_t& request) noexcept;
  // Prevents further calls. If `waits`, blocks until calls in progress have returned, except inside
  // a callback: two callbacks that waited for each other would never return. The thread's interrupt
  // function may end the wait.
  void close(bool waits) noexcept;

 private:
  ~OomCallback() override = default;
  std::uint64_t call_function(const isthmus_oom_request_t& request) const noexcept;
  // Waits until no call is in progress. Returns false if one still is at `until`.
  [[nodiscard]] bool wait_for_calls(const os::Deadline& until) noexcept;

  const isthmus_oom_function_t function_;
  const Owner user_;
  Mutex lock_;
  ConditionVariable ended_;
  unsigned running_ ISTHMUS_GUARDED_BY(lock_) = 0;
  bool closed_ ISTHMUS_GUARDED_BY(lock_) = false;
};

// The callbacks of the process. Never destroyed. Thread-safe.
class OomCallbacks {
 public:
  struct Outcome {
    std::size_t called = 0;   // callbacks called
    std::uint64_t bytes = 0;  // reported by them as released
  };
  // Throws std::bad_alloc.
  void add(Ref<OomCallback> callback);
  // Also closes the callback.
  void remove(OomCallback& callback, bool waits) noexcept;
  // Calls all callbacks in the order in which they were added. Calls none inside a callback.
  [[nodiscard]] Outcome call_all(const isthmus_oom_request_t& request) noexcept;

 private:
  struct Entry {
    std::uint64_t number = 0;
    Ref<OomCallback> callback;
  };
  // The first entry with a number above `last` and up to `newest`; an empty entry if there is none.
  [[nodiscard]] Entry next(std::uint64_t last, std::uint64_t newest) noexcept;
  [[nodiscard]] std::uint64_t newest() noexcept;

  Mutex lock_;
  std::uint64_t last_number_ ISTHMUS_GUARDED_BY(lock_) = 0;
  std::vector<Entry> all_ ISTHMUS_GUARDED_BY(lock_);  // sorted by number
};
[[nodiscard]] OomCallbacks& process_oom_callbacks() noexcept;

[[nodiscard]] isthmus_oom_request_t request_for(Device& device, UsmKind kind,
                                                std::size_t nbytes) noexcept;
}  // namespace isthmus
