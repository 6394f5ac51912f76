// SPDX-License-Identifier: Apache-2.0
#pragma once
// Upstream memory that a resource caches and has not allocated to any caller, such as that of an
// arena. It is returned whenever the driver refuses a request (other_pools.hpp).

#include <atomic>
#include <vector>

#include "core/lock_guard.hpp"
#include "core/mutex.hpp"
#include "core/thread_safety.hpp"
#include "memory/base/memory_resource.hpp"

namespace isthmus {

class MemoryCache {
 public:
  MemoryCache(const MemoryCache&) = delete;
  MemoryCache& operator=(const MemoryCache&) = delete;

  // Releases memory that is neither allocated nor used by work, and returns the bytes released.
  // Does not wait for work.
  virtual std::size_t release_unused() noexcept = 0;
  // Events of unfinished work that prevents the release of cached memory. Throws std::bad_alloc.
  [[nodiscard]] virtual std::vector<Ref<Event>> running() = 0;

  // The resource that caches the memory.
  [[nodiscard]] MemoryResource& owner() const noexcept { return owner_; }
  // The resources at the end of the chain of upstreams of `owner`.
  [[nodiscard]] const std::vector<MemoryResource*>& bases() const noexcept { return bases_; }

 protected:
  // `upstream` provides the memory. Throws std::bad_alloc.
  MemoryCache(MemoryResource& owner, MemoryResource& upstream) : owner_{owner} {
    upstream.collect_bases(bases_);
  }
  virtual ~MemoryCache() = default;

  // Adds the cache to the list. Call after an allocation from upstream, before its memory is
  // cached. Further calls cost one load.
  void ensure_listed() noexcept;
  // Removes the cache from the list. Call before destruction begins, since virtual functions of
  // listed caches are called.
  void unlist() noexcept;

 private:
  friend class MemoryCaches;

  MemoryResource& owner_;
  std::vector<MemoryResource*> bases_;
  std::atomic<bool> is_listed_{false};
  // Links of the list, guarded by its lock.
  MemoryCache* newer_ = nullptr;
  MemoryCache* older_ = nullptr;
};

// The list of caches that have obtained upstream memory and whose owners are referenced.
// Thread-safe. Allocates nothing. A cache is newer in the list than the caches below it, since
// those provided memory first.
class MemoryCaches {
 public:
  void add(MemoryCache& cache) noexcept;
  void remove(MemoryCache& cache) noexcept;

  struct Found {
    MemoryCache* cache = nullptr;  // null: none
    Ref<MemoryResource> owner;     // keeps `cache` alive
  };
  // The newest cache that `fits` accepts among those older than `last`, or among all if `last` is
  // null. `fits` is called under the lock. No reference is taken to the owner of a cache that it
  // rejects, so none is destroyed here. The caller has a reference to the owner of `last`, which
  // this function returned.
  template <class Fits>
  [[nodiscard]] Found next(const MemoryCache* last, Fits&& fits) {
    const LockGuard hold{lock_};
    for (auto* each = last == nullptr ? newest_ : last->older_; each != nullptr;
         each = each->older_) {
      if (fits(*each) && each->owner_.try_retain()) {
        return {each, Ref<MemoryResource>::adopt(&each->owner_)};
      }
    }
    return {};
  }

 private:
  Mutex lock_;
  MemoryCache* newest_ ISTHMUS_GUARDED_BY(lock_) = nullptr;
};
// The list of the process; never destroyed.
[[nodiscard]] MemoryCaches& process_memory_caches() noexcept;

}  // namespace isthmus
