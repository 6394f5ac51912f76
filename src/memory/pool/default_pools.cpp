// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/default_pools.hpp"

#include <algorithm>
#include <utility>

#include "core/expects.hpp"
#include "core/lock_guard.hpp"
#include "memory/pool/decay.hpp"
#include "os/process.hpp"

namespace isthmus {
namespace {

// Whether buffers need a separate pool, because remapped memory cannot be shared.
bool needs_buffer_pool(Context& context, Device& device, UsmKind kind) noexcept {
  return device.can(ISTHMUS_CAN_IPC) && context.chunks(device, kind) != nullptr;
}

}  // namespace

DefaultPools& DefaultPools::only() {
  static NeverDestroyed<DefaultPools> instance;
  return *instance;
}

DefaultPools::DefaultPools() noexcept {
  DecayingPools::only().set_after_decay([]() noexcept { only().drop_unused(); });
}

Pool* DefaultPools::find_entry(const Key& key) noexcept {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& each) { return each.key == key; });
  return found == entries_.end() ? nullptr : found->pool.get();
}

Result<Ref<Pool>> DefaultPools::find(Context& context, Device& device, UsmKind kind, Use use) {
  ISTHMUS_EXPECTS(!os::is_forked_child());
  const Key key{context.key(), &device, kind, use};
  {
    const LockGuard hold{lock_};
    if (auto* const found = find_entry(key)) {
      return Ref<Pool>{found};
    }
  }
  if (auto bad = context.check(device, {kind, 0, 0})) {
    return bad;
  }
  drop_unused();
  auto pool = use == Use::buffers && !needs_buffer_pool(context, device, kind)
                  ? find(context, device, kind, Use::arrays)
                  : create(context, device, kind, use);
  ISTHMUS_TRY(pool);
  return insert(key, *std::move(pool));
}

Result<Ref<Pool>> DefaultPools::create(Context& context, Device& device, UsmKind kind, Use use) {
  Pool::Options options;
  options.decay = k_decay;
  options.remaps = use == Use::arrays;
  options.live = nullptr;
  return Pool::create(context, device, kind, options);
}

// If two threads create a pool at the same time, both use the one that was inserted first.
Ref<Pool> DefaultPools::insert(const Key& key, Ref<Pool> pool) {
  const LockGuard hold{lock_};
  if (auto* const found = find_entry(key)) {
    return Ref<Pool>{found};
  }
  entries_.push_back({key, pool, last_number_ + 1});
  ++last_number_;
  return pool;
}

// The table's own references, one for each entry, do not count as uses.
bool DefaultPools::is_unused(Pool& pool) const noexcept {
  const auto entries = std::count_if(entries_.begin(), entries_.end(),
                                     [&](const Entry& each) { return each.pool.get() == &pool; });
  return pool.references() == static_cast<std::size_t>(entries) && pool.usage().held_bytes == 0;
}

void DefaultPools::drop_unused() noexcept try {
  std::vector<Ref<Pool>> dropped;
  const LockGuard hold{lock_};
  dropped.reserve(entries_.size());
  for (std::size_t index = 0; index < entries_.size();) {
    auto* const pool = entries_[index].pool.get();
    if (!is_unused(*pool)) {
      ++index;
      continue;
    }
    std::erase_if(entries_, [&](Entry& each) {
      if (each.pool.get() != pool) {
        return false;
      }
      dropped.push_back(std::move(each.pool));
      return true;
    });
  }
} catch (const std::bad_alloc&) {
  // The pools remain in the table.
}

bool DefaultPools::is_second_entry(std::size_t index) const noexcept {
  const auto* const pool = entries_[index].pool.get();
  return std::any_of(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(index),
                     [pool](const Entry& each) { return each.pool.get() == pool; });
}

Ref<Pool> DefaultPools::next(std::uint64_t& last) noexcept {
  const LockGuard hold{lock_};
  for (std::size_t index = 0; index < entries_.size(); ++index) {
    if (entries_[index].number > last && !is_second_entry(index)) {
      last = entries_[index].number;
      return entries_[index].pool;
    }
  }
  return {};
}

template <class Visit>
void DefaultPools::for_each(Visit&& visit) {
  std::uint64_t last = 0;
  while (const auto each = next(last)) {
    visit(*each);
  }
}

std::size_t DefaultPools::trim() noexcept {
  std::size_t released = 0;
  for_each([&](Pool& each) { released += each.trim(0); });
  drop_unused();
  return released;
}

void DefaultPools::count_blocks(LiveTotal& total, UsmKind kind) noexcept {
  for_each([&](const Pool& each) {
    if (kind == ISTHMUS_KIND_UNKNOWN || kind == each.kind()) {
      const auto counts = each.count();
      total.count += counts.live_blocks;
      total.bytes += counts.live;
    }
  });
}

bool DefaultPools::has(const MemoryResource& resource) noexcept {
  const LockGuard hold{lock_};
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry& each) { return each.pool.get() == &resource; });
}

std::size_t DefaultPools::count() noexcept {
  std::size_t total = 0;
  for_each([&](const Pool&) { ++total; });
  return total;
}

}  // namespace isthmus
