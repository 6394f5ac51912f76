// SPDX-License-Identifier: Apache-2.0
#include "memory/decay.hpp"

#include <algorithm>
#include <new>

#include "backend/library_threads.hpp"
#include "core/never_destroyed.hpp"
#include "memory/default_pools.hpp"
#include "memory/pool.hpp"
#include "os/process.hpp"

namespace isthmus {

decay_window::clock::time_point decay_window::end() const noexcept {
  const clock::time_point began{clock::duration{began_.load(std::memory_order_relaxed)}};
  return began > clock::time_point::max() - length_ ? clock::time_point::max() : began + length_;
}

bool decay_window::turn(clock::time_point now) noexcept {
  auto began = began_.load(std::memory_order_relaxed);
  return is_on() && now >= end() &&
         began_.compare_exchange_strong(began, now.time_since_epoch().count(),
                                        std::memory_order_relaxed);
}

decaying_pools& decaying_pools::only() {
  static never_destroyed<decaying_pools> made;
  return *made;
}

void decaying_pools::join(pool& member) { members_.join(member); }

void decaying_pools::wake(const decay_window& of) noexcept {
  do_when_idle(do_what_is_due, of.end());
}

// A pool that holds no memory has nothing to decay; it calls `wake` when it grows.
os::deadline decaying_pools::do_what_is_due() noexcept try {
  const os::driver_call call;
  if (!call) {
    return {};
  }
  auto next = only().decay_all();
  default_pools::only().drop_unused();
  return next;
} catch (const std::bad_alloc&) {
  return {};  // no more decay until a pool grows again
}

os::deadline decaying_pools::decay_all() {
  os::deadline next;
  for (const auto& each : members_.alive()) {
    each->decay();
    if (each->usage().held_bytes != 0) {
      next = std::min(next.value_or(os::clock::time_point::max()), each->window().end());
    }
  }
  return next;
}

}  // namespace isthmus
