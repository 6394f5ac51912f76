// SPDX-License-Identifier: Apache-2.0
#pragma once
// A list of pools that can be visited while other threads create and release pools.

#include <cstddef>
#include <functional>
#include <vector>

#include "core/lock_guard.hpp"
#include "core/mutex.hpp"
#include "core/thread_safety.hpp"
#include "memory/base/memory_resource.hpp"
#include "os/futex.hpp"

namespace isthmus {

// The interface of a pool that lists of pools use: to release free memory, and to wait for the work
// that still uses it.
class ListedPool : public MemoryResource {
 public:
  // As `trim`, for its own free memory only: does not trim upstream, and performs no pending
  // releases.
  virtual std::size_t trim_free(std::size_t keep) noexcept = 0;
  // Events of the work that still uses freed memory. Throws std::bad_alloc.
  [[nodiscard]] virtual std::vector<Ref<Event>> running() = 0;
  // If a decay window has ended, returns the memory that was not needed during the window to the
  // driver. Returns the bytes released.
  virtual std::size_t decay(os::Clock::time_point now) noexcept = 0;
  // The end of the current decay window.
  [[nodiscard]] virtual os::Clock::time_point decay_end() const noexcept = 0;

 protected:
  using MemoryResource::MemoryResource;
};

// Thread-safe. Does not keep pools alive: a pool is removed from the list before it is destroyed.
class PoolList {
 public:
  // Throws std::bad_alloc.
  void add(ListedPool& member);
  // Does nothing for a pool that was never added.
  void remove(ListedPool& member) noexcept;
  // References to the pools that are still referenced and, if `fits` is set, that `fits` accepts.
  // `fits` is called under the lock. It selects pools before references are taken, so no reference
  // to a rejected pool, possibly the last one, is dropped here. Throws std::bad_alloc.
  [[nodiscard]] std::vector<Ref<ListedPool>> alive(
      const std::function<bool(const ListedPool&)>& fits = nullptr);

  // Calls `visit` for each pool, under the lock. `visit` must not release a pool.
  template <class Visit>
  void for_each(Visit&& visit) {
    const LockGuard hold{lock_};
    for (auto* each : members_) {
      visit(*each);
    }
  }

 private:
  Mutex lock_;
  std::vector<ListedPool*> members_ ISTHMUS_GUARDED_BY(lock_);
};

}  // namespace isthmus
