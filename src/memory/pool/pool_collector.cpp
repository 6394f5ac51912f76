// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/pool_collector.hpp"

namespace isthmus {

void PoolCollector::coalesce() noexcept {
  caches_.fences().fence();
  regions_.coalesce();
}

void PoolCollector::collect_own() noexcept {
  ThreadCache::flush_own(caches_);
  coalesce();
}

bool PoolCollector::flush_idle() noexcept {
  constexpr auto k_interval = std::chrono::milliseconds{10};
  const auto now = std::chrono::steady_clock::now();
  auto due = next_revoke_.load(k_relaxed);
  if (now < due || !next_revoke_.compare_exchange_strong(due, now + k_interval, k_relaxed)) {
    return false;  // done less than 10 ms ago, or by another thread right now
  }
  ThreadCache::revoke(caches_, ThreadCache::Revoked::idle);
  return true;
}

void PoolCollector::collect_all(ThreadCache::Revoked scope) noexcept {
  ThreadCache::flush_own(caches_);
  ThreadCache::revoke(caches_, scope);
  slabs_.flush();
  coalesce();
}

}  // namespace isthmus
