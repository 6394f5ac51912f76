// SPDX-License-Identifier: Apache-2.0
#pragma once
// The current resources: they serve requests without a resource, from every language, in place of
// the default pools. Thread-safe.
//
// A request uses the resource of the thread's `using` block (using_block.hpp), or else that of the
// process, which is kept here: one for each kind of memory of a device in a context.

#include <vector>

#include "core/never_destroyed.hpp"
#include "core/spin_lock.hpp"
#include "core/thread_safety.hpp"
#include "memory/base/current_resource_users.hpp"
#include "memory/base/memory_resource.hpp"
#include "memory/base/resource_key.hpp"

namespace isthmus {

// The table of the process. It keeps its resources alive, and they their contexts, until they are
// replaced or reset; it does not release them when the process exits. Resources are released
// outside of the lock, because their destruction may call drivers and functions of the program.
class CurrentResources {
 public:
  // Never destroyed.
  [[nodiscard]] static CurrentResources& only();

  // Replaces the resource with the same key. Throws std::bad_alloc, without effect.
  void set(Ref<MemoryResource> resource);
  void reset(const ResourceKey& key) noexcept;
  void reset_all() noexcept;
  // Null if there is none.
  [[nodiscard]] Ref<MemoryResource> find(const ResourceKey& key) noexcept;

 private:
  friend NeverDestroyed<CurrentResources>;
  CurrentResources() noexcept = default;

  struct Entry {
    ResourceKey key;
    Ref<MemoryResource> resource;
  };
  // `entries_.end()` if there is none.
  [[nodiscard]] std::vector<Entry>::iterator find_entry(const ResourceKey& key) noexcept
      ISTHMUS_REQUIRES(lock_);

  SpinLock lock_;
  std::vector<Entry> entries_ ISTHMUS_GUARDED_BY(lock_);
};

// The resource for requests of that kind on that queue that name none; null: the default pool.
// Warm paths call `has_current_resources` first.
[[nodiscard]] Ref<MemoryResource> current_resource(UsmKind kind, const Queue& queue) noexcept;

}  // namespace isthmus
