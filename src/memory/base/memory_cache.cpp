// SPDX-License-Identifier: Apache-2.0
#include "memory/base/memory_cache.hpp"

#include "core/lock_guard.hpp"
#include "core/never_destroyed.hpp"
#include "os/process.hpp"

namespace isthmus {

void MemoryCache::ensure_listed() noexcept {
  if (!is_listed_.load(std::memory_order_relaxed)) {
    process_memory_caches().add(*this);
  }
}

void MemoryCache::unlist() noexcept { process_memory_caches().remove(*this); }

// In a forked child the lock may be held by a thread that does not exist there.
void MemoryCaches::add(MemoryCache& cache) noexcept {
  if (os::is_forked_child()) {
    return;
  }
  const LockGuard hold{lock_};
  if (cache.is_listed_.exchange(true, std::memory_order_relaxed)) {
    return;  // another thread has added it meanwhile
  }
  cache.older_ = newest_;
  if (newest_ != nullptr) {
    newest_->newer_ = &cache;
  }
  newest_ = &cache;
}

void MemoryCaches::remove(MemoryCache& cache) noexcept {
  if (os::is_forked_child()) {
    return;
  }
  const LockGuard hold{lock_};
  if (!cache.is_listed_.exchange(false, std::memory_order_relaxed)) {
    return;
  }
  (cache.newer_ != nullptr ? cache.newer_->older_ : newest_) = cache.older_;
  if (cache.older_ != nullptr) {
    cache.older_->newer_ = cache.newer_;
  }
  cache.newer_ = cache.older_ = nullptr;
}

MemoryCaches& process_memory_caches() noexcept {
  static NeverDestroyed<MemoryCaches> only;
  return *only;
}

}  // namespace isthmus
