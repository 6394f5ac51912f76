// SPDX-License-Identifier: Apache-2.0
#include "memory/base/current_resources.hpp"

#include <algorithm>
#include <utility>

#include "core/lock_guard.hpp"
#include "memory/base/using_block.hpp"

namespace isthmus {

CurrentResources& CurrentResources::only() {
  static NeverDestroyed<CurrentResources> instance;
  return *instance;
}

auto CurrentResources::find_entry(const ResourceKey& key) noexcept -> std::vector<Entry>::iterator {
  return std::find_if(entries_.begin(), entries_.end(),
                      [&](const Entry& each) { return each.key == key; });
}

// The parameter holds the replaced resource at the end, and outlives the lock.
void CurrentResources::set(Ref<MemoryResource> resource) {
  const auto key = ResourceKey::of(*resource);
  const LockGuard hold{lock_};
  if (const auto found = find_entry(key); found != entries_.end()) {
    std::swap(found->resource, resource);
    return;
  }
  entries_.push_back({key, std::move(resource)});
  current_resource_users.fetch_add(1, std::memory_order_relaxed);
}

void CurrentResources::reset(const ResourceKey& key) noexcept {
  Ref<MemoryResource> removed;
  const LockGuard hold{lock_};
  if (const auto found = find_entry(key); found != entries_.end()) {
    removed = std::move(found->resource);
    entries_.erase(found);
    current_resource_users.fetch_sub(1, std::memory_order_relaxed);
  }
}

void CurrentResources::reset_all() noexcept {
  std::vector<Entry> removed;
  const LockGuard hold{lock_};
  removed.swap(entries_);
  current_resource_users.fetch_sub(static_cast<std::uint32_t>(removed.size()),
                                   std::memory_order_relaxed);
}

Ref<MemoryResource> CurrentResources::find(const ResourceKey& key) noexcept {
  const LockGuard hold{lock_};
  const auto found = find_entry(key);
  return found != entries_.end() ? found->resource : Ref<MemoryResource>{};
}

Ref<MemoryResource> current_resource(UsmKind kind, const Queue& queue) noexcept {
  const auto key = ResourceKey::of(kind, queue);
  if (const auto found = UsingBlock::find(key)) {
    return Ref<MemoryResource>{*found};
  }
  return WithoutCurrentResource::is_active() ? Ref<MemoryResource>{}
                                             : CurrentResources::only().find(key);
}

}  // namespace isthmus
