// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/decay.hpp"

#include <algorithm>
#include <new>

#include "backend/library_threads.hpp"
#include "core/never_destroyed.hpp"
#include "os/process.hpp"

namespace isthmus {

DecayWindow::Clock::time_point DecayWindow::end() const noexcept {
  const Clock::time_point start{Clock::duration{start_.load(std::memory_order_relaxed)}};
  return start > Clock::time_point::max() - length_ ? Clock::time_point::max() : start + length_;
}

bool DecayWindow::advance(Clock::time_point now) noexcept {
  auto start = start_.load(std::memory_order_relaxed);
  return is_enabled() && now >= end() &&
         start_.compare_exchange_strong(start, now.time_since_epoch().count(),
                                        std::memory_order_relaxed);
}

DecayingPools& DecayingPools::only() {
  static NeverDestroyed<DecayingPools> instance;
  return *instance;
}

void DecayingPools::join(ListedPool& member) { members_.add(member); }

void DecayingPools::schedule(const DecayWindow& window) noexcept {
  run_when_idle(decay_due, window.end());
}

// A pool that holds no memory has nothing to decay; it calls `schedule` when it grows.
os::Deadline DecayingPools::decay_due() noexcept try {
  const os::DriverCall call;
  if (!call) {
    return {};
  }
  auto next = only().decay_all();
  if (const auto after_decay = only().after_decay_.load()) {
    after_decay();
  }
  return next;
} catch (const std::bad_alloc&) {
  return {};  // no more decay until a pool grows again
}

os::Deadline DecayingPools::decay_all() {
  os::Deadline next;
  for (const auto& each : members_.alive()) {
    each->decay(os::Clock::now());
    if (each->usage().held_bytes != 0) {
      next = std::min(next.value_or(os::Clock::time_point::max()), each->decay_end());
    }
  }
  return next;
}

}  // namespace isthmus
