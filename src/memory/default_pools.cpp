// SPDX-License-Identifier: Apache-2.0
#include "memory/default_pools.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "core/never_destroyed.hpp"

namespace isthmus {
namespace {

// Whether buffers need a separate pool there.
bool has_two(context& home, device& where, usm_kind kind) noexcept {
  return where.can(ISTHMUS_CAN_IPC) && home.chunks(where, kind) != nullptr;
}

}  // namespace

default_pools& default_pools::only() {
  static never_destroyed<default_pools> made;
  return *made;
}

pool* default_pools::known(const key& of) noexcept {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const entry& each) { return each.of == of; });
  return found == entries_.end() ? nullptr : found->which.get();
}

result<ref<pool>> default_pools::find(context& home, device& where, usm_kind kind, use by) {
  const key wanted{home.key(), &where, kind, by};
  {
    const std::lock_guard hold{lock_};
    if (auto* const found = known(wanted)) {
      return ref<pool>{found};
    }
  }
  if (auto bad = home.check(where, {kind, 0, 0})) {
    return bad;
  }
  drop_unused();
  auto made = by == use::buffers && !has_two(home, where, kind)
                  ? find(home, where, kind, use::arrays)
                  : make(home, where, kind, by);
  ISTHMUS_TRY(made);
  return enter(wanted, *std::move(made));
}

result<ref<pool>> default_pools::make(context& home, device& where, usm_kind kind, use by) {
  pool::options how;
  how.decay = k_decay;
  how.remaps = by == use::arrays;
  how.live = nullptr;
  return pool::create(home, where, kind, how);
}

// If two threads create a pool at the same time, both use the one that was entered first.
ref<pool> default_pools::enter(const key& of, ref<pool> made) {
  const std::lock_guard hold{lock_};
  if (auto* const found = known(of)) {
    return ref<pool>{found};
  }
  entries_.push_back({of, made, entered_ + 1});
  ++entered_;
  return made;
}

// The table's own references, one for each entry, do not count as uses.
bool default_pools::is_unused(pool& one) const noexcept {
  const auto entries = std::count_if(entries_.begin(), entries_.end(),
                                     [&](const entry& each) { return each.which.get() == &one; });
  return one.references() == static_cast<std::size_t>(entries) && one.usage().held_bytes == 0;
}

void default_pools::drop_unused() noexcept try {
  std::vector<ref<pool>> gone;
  const std::lock_guard hold{lock_};
  gone.reserve(entries_.size());
  for (std::size_t at = 0; at < entries_.size();) {
    auto* const which = entries_[at].which.get();
    if (!is_unused(*which)) {
      ++at;
      continue;
    }
    std::erase_if(entries_, [&](entry& each) {
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

bool default_pools::is_second_entry(std::size_t at) const noexcept {
  const auto* const which = entries_[at].which.get();
  return std::any_of(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(at),
                     [which](const entry& each) { return each.which.get() == which; });
}

ref<pool> default_pools::next(std::uint64_t& last) noexcept {
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
void default_pools::for_each(Visit&& visit) {
  std::uint64_t last = 0;
  while (const auto each = next(last)) {
    visit(*each);
  }
}

std::size_t default_pools::trim() noexcept {
  std::size_t given_back = 0;
  for_each([&](pool& each) { given_back += each.trim(0); });
  drop_unused();
  return given_back;
}

void default_pools::count_blocks(live_total& of, usm_kind kind) noexcept {
  for_each([&](const pool& each) {
    if (kind == ISTHMUS_KIND_UNKNOWN || kind == each.kind()) {
      const auto seen = each.count();
      of.count += seen.live_blocks;
      of.bytes += seen.live;
    }
  });
}

bool default_pools::has(const pool& one) noexcept {
  const std::lock_guard hold{lock_};
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const entry& each) { return each.which.get() == &one; });
}

std::size_t default_pools::count() noexcept {
  std::size_t found = 0;
  for_each([&](const pool&) { ++found; });
  return found;
}

}  // namespace isthmus
