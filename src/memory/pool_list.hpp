// SPDX-License-Identifier: Apache-2.0
#pragma once
// A list of pools that can be visited while other threads create and release pools.

#include <cstddef>
#include <functional>
#include <mutex>
#include <vector>

#include "core/ref.hpp"

namespace isthmus {

class Pool;

// Thread-safe. Does not keep pools alive: a pool is removed from the list before it is destroyed.
class PoolList {
 public:
  // Throws std::bad_alloc.
  void add(Pool& member);
  // Does nothing for a pool that was never added.
  void remove(Pool& member) noexcept;
  // References to the pools that are still referenced and, if `fits` is set, that `fits` accepts.
  // `fits` is called under the lock. It selects pools before references are taken, so no reference
  // to a rejected pool, possibly the last one, is dropped here. Throws std::bad_alloc.
  [[nodiscard]] std::vector<Ref<Pool>> alive(
      const std::function<bool(const Pool&)>& fits = nullptr);

  // Calls `visit` for each pool, under the lock. `visit` must not release a pool.
  template <class Visit>
  void for_each(Visit&& visit) {
    const std::lock_guard hold{lock_};
    for (auto* each : members_) {
      visit(*each);
    }
  }

 private:
  std::mutex lock_;
  std::vector<Pool*> members_;
};

}  // namespace isthmus
