// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/pool_trim.hpp"

#include <algorithm>
#include <thread>

#include "core/undo.hpp"
#include "memory/base/deferred_release.hpp"

namespace isthmus {

std::size_t PoolTrim::trim(std::size_t keep) noexcept {
  start_release_thread();
  release_on_demand();
  const auto released = decay(os::Clock::now()) + trim_free(keep);
  auto* const upstream = source_.upstream();
  return std::max(released, upstream != nullptr ? upstream->trim(keep) : 0);
}

std::size_t PoolTrim::trim_free(std::size_t keep) noexcept {
  collector_.collect_all(ThreadCache::Revoked::all);
  return trim_.trim(keep);
}

std::size_t PoolTrim::decay(DecayWindow::Clock::time_point now) noexcept {
  if (!window_.is_enabled() || !window_.advance(now)) {
    return 0;
  }
  collecting_.fetch_add(1, std::memory_order_acq_rel);
  const Undo collected{[this] { collecting_.fetch_sub(1, std::memory_order_acq_rel); }};
  collector_.collect_all(ThreadCache::Revoked::idle);
  const auto held = source_.counts().held_bytes();
  return trim_.trim(held - std::min(held, regions_.min_free_bytes()));
}

// Above the soft limit: releases all free memory that exceeds it. Where memory cannot be remapped:
// free regions that did not fit the request, until they amount to the bytes that the pool is about
// to obtain. In a recorded training run, the pool held 1.5 times the requested memory without this,
// and 1.05 times with it.
void PoolTrim::shrink(std::size_t needed) noexcept {
  const auto held = source_.counts().held_bytes();
  const auto soft_limit = source_.sizes().soft_limit_bytes;
  if (held > soft_limit - std::min(needed, soft_limit)) {
    trim(soft_limit - std::min(needed, soft_limit));
  } else if (!source_.moves()) {
    trim_.release_unused(source_.growth_for(needed));
  }
}

// A collection takes some 10 us. The wait is bounded, since the collecting thread may be
// descheduled or in a driver call, and growing the pool instead is not an error.
void PoolTrim::wait_for_collection() const noexcept {
  constexpr auto k_max_wait = std::chrono::milliseconds{5};
  if (collecting_.load(std::memory_order_acquire) == 0) {
    return;
  }
  const auto until = std::chrono::steady_clock::now() + k_max_wait;
  while (collecting_.load(std::memory_order_acquire) != 0 &&
         std::chrono::steady_clock::now() < until) {
    std::this_thread::yield();
  }
}

}  // namespace isthmus
