// SPDX-License-Identifier: Apache-2.0
#include "memory/default_pools.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "core/never_destroyed.hpp"

namespace isthmus {
namespace {

// Whether buffers need a separate pool there.
bool has_two(Context& context, Device& device, UsmKind kind) noexcept {
  return device.can(ISTHMUS_CAN_IPC) && context.chunks(device, kind) != nullptr;
}

}  // namespace

DefaultPools& DefaultPools::only() {
  static NeverDestroyed<DefaultPools> made;
  return *made;
}

Pool* DefaultPools::known(const Key& key) noexcept {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& each) { return each.of == key; });
  return found == entries_.end() ? nullptr : found->which.get();
}

Result<Ref<Pool>> DefaultPools::find(Context& context, Device& device, UsmKind kind, Use use) {
  const Key wanted{context.key(), &device, kind, use};
  {
    const std::lock_guard hold{lock_};
    if (auto* const found = known(wanted)) {
      return Ref<Pool>{found};
    }
  }
  if (auto bad = context.check(device, {kind, 0, 0})) {
    return bad;
  }
  drop_unused();
  auto made = use == Use::buffers && !has_two(context, device, kind)
                  ? find(context, device, kind, Use::arrays)
                  : make(context, device, kind, use);
  ISTHMUS_TRY(made);
  return enter(wanted, *std::move(made));
}

Result<Ref<Pool>> DefaultPools::make(Context& context, Device& device, UsmKind kind, Use use) {
  Pool::Options how;
  how.decay = k_decay;
  how.remaps = use == Use::arrays;
  how.live = nullptr;
  return Pool::create(context, device, kind, how);
}

// If two threads create a pool at the same time, both use the one that was entered first.
Ref<Pool> DefaultPools::enter(const Key& key, Ref<Pool> made) {
  const std::lock_guard hold{lock_};
  if (auto* const found = known(key)) {
    return Ref<Pool>{found};
  }
  entries_.push_back({key, made, entered_ + 1});
  ++entered_;
  return made;
}

// The table's own references, one for each entry, do not count as uses.
bool DefaultPools::is_unused(Pool& one) const noexcept {
  const auto entries = std::count_if(entries_.begin(), entries_.end(),
                                     [&](const Entry& each) { return each.which.get() == &one; });
  return one.references() == static_cast<std::size_t>(entries) && one.usage().held_bytes == 0;
}

void DefaultPools::drop_unused() noexcept try {
  std::vector<Ref<Pool>> gone;
  const std::lock_guard hold{lock_};
  gone.reserve(entries_.size());
  for (std::size_t at = 0; at < entries_.size();) {
    auto* const which = entries_[at].which.get();
    if (!is_unused(*which)) {
      ++at;
      continue;
    }
    std::erase_if(entries_, [&](Entry& each) {
      if (each.which.get() != which) {
        return false;
      }
      gone.push_back(std::move(each.which));
      return true;
    });
  }
} catch (const std::bad_alloc&) {
  // The pools stay in the table.
}

bool DefaultPools::is_second_entry(std::size_t at) const noexcept {
  const auto* const which = entries_[at].which.get();
  return std::any_of(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(at),
                     [which](const Entry& each) { return each.which.get() == which; });
}

Ref<Pool> DefaultPools::next(std::uint64_t& last) noexcept {
  const std::lock_guard hold{lock_};
  for (std::size_t at = 0; at < entries_.size(); ++at) {
    if (entries_[at].number > last && !is_second_entry(at)) {
      last = entries_[at].number;
      return entries_[at].which;
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
  std::size_t given_back = 0;
  for_each([&](Pool& each) { given_back += each.trim(0); });
  drop_unused();
  return given_back;
}

void DefaultPools::count_blocks(LiveTotal& total, UsmKind kind) noexcept {
  for_each([&](const Pool& each) {
    if (kind == ISTHMUS_KIND_UNKNOWN || kind == each.kind()) {
      const auto seen = each.count();
      total.count += seen.live_blocks;
      total.bytes += seen.live;
    }
  });
}

bool DefaultPools::has(const Pool& one) noexcept {
  const std::lock_guard hold{lock_};
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry& each) { return each.which.get() == &one; });
}

std::size_t DefaultPools::count() noexcept {
  std::size_t found = 0;
  for_each([&](const Pool&) { ++found; });
  return found;
}

}  // namespace isthmus
