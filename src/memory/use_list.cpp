#include "memory/use_list.hpp"

#include <algorithm>
#include <mutex>

namespace isthmus {
namespace {

// Moves what `leaves` says to the end of `gone`: references are dropped by the caller, outside the
// lock.
template <class Entry, class Leaves>
void move_out(std::vector<Entry>& entries, std::vector<Entry>& gone, Leaves&& leaves) {
  auto first = std::stable_partition(entries.begin(), entries.end(),
                                     [&](const Entry& each) { return !leaves(each); });
  gone.reserve(gone.size() + static_cast<std::size_t>(entries.end() - first));
  std::move(first, entries.end(), std::back_inserter(gone));
  entries.erase(first, entries.end());
}

}  // namespace

std::uint64_t use_list::begin() noexcept {
  const std::lock_guard hold{lock_};
  return next_number_;
}

// The newer one's end implies the older one's: same queue, submitted before, and whoever conflicts
// with the older conflicts with the newer.
bool use_list::superseded(const entry& older, const use& newer, std::uint64_t began_at) noexcept {
  return older.ended->settled() ||
         (newer.on != 0 && older.what.on == newer.on && older.number < began_at &&
          newer.range.covers(older.what.range) && (newer.writes || !older.what.writes));
}

void use_list::join_ranges(entry& newest, std::uint64_t began_at, std::vector<entry>& gone) {
  if (newest.what.on == 0) {
    return;
  }
  for (const auto& older : entries_) {
    if (older.what.on == newest.what.on && older.number < began_at) {
      newest.what.range.begin = std::min(newest.what.range.begin, older.what.range.begin);
      newest.what.range.end = std::max(newest.what.range.end, older.what.range.end);
      newest.what.writes = newest.what.writes || older.what.writes;
    }
  }
  move_out(entries_, gone, [&](const entry& older) {
    return older.what.on == newest.what.on && older.number < began_at;
  });
}

void use_list::insert(const use& what, const ref<event>& ended, std::uint64_t began_at) {
  std::vector<entry> gone;
  entry newest{what, ended, 0};
  ever_used_.store(true, std::memory_order_release);
  const std::lock_guard hold{lock_};
  may_run_.store(true, std::memory_order_release);
  newest.number = next_number_++;
  if (entries_.size() == 1 && superseded(entries_.front(), what, began_at)) {
    std::swap(entries_.front(), newest);
    return;
  }
  move_out(entries_, gone, [&](const entry& older) { return superseded(older, what, began_at); });
  if (entries_.size() >= k_longest) {
    join_ranges(newest, began_at, gone);
  }
  entries_.push_back(newest);
}

std::vector<ref<event>> use_list::what_may_have_ended() {
  const std::lock_guard hold{lock_};
  std::vector<ref<event>> found;
  if (entries_.size() >= next_look_) {
    found.reserve(entries_.size());
    for (const auto& each : entries_) {
      found.push_back(each.ended);
    }
  }
  return found;
}

// Drivers are asked outside the lock.
void use_list::look_for_ended() noexcept try {
  const auto looked_at = what_may_have_ended();
  if (looked_at.empty() || in_continuation()) {
    return;
  }
  for (const auto& each : looked_at) {
    static_cast<void>(each->pending());
  }
  std::vector<entry> gone;
  const std::lock_guard hold{lock_};
  move_out(entries_, gone, [](const entry& each) { return each.ended->settled(); });
  next_look_ = 2 * std::max(k_longest, entries_.size());
} catch (const std::bad_alloc&) {
  // It stays long.
}

void use_list::add(const use& what, const ref<event>& ended, std::uint64_t began_at) noexcept try {
  insert(what, ended, began_at);
  look_for_ended();
} catch (const std::bad_alloc&) {
  static_cast<void>(ended->wait(std::nullopt));
}

void use_list::collect(const use& wanted, std::vector<ref<event>>& out) {
  if (!ever_used_.load(std::memory_order_acquire)) {
    return;
  }
  std::vector<ref<event>> of_others;
  {
    const std::lock_guard hold{lock_};
    for (const auto& other : entries_) {
      const bool same_queue = wanted.on != 0 && other.what.on == wanted.on;
      if (!same_queue && (other.what.writes || wanted.writes) &&
          other.what.range.overlaps(wanted.range) && !other.ended->settled()) {
        (other.what.is_of_others ? of_others : out).push_back(other.ended);
      }
    }
  }
  if (!of_others.empty()) {
    out.push_back(end_of_all(of_others));
  }
}

std::optional<std::uint64_t> use_list::only_queue() noexcept {
  const std::lock_guard hold{lock_};
  std::uint64_t only = 0;
  for (const auto& each : entries_) {
    if (!each.ended->settled()) {
      if (each.what.on == 0 || (only != 0 && only != each.what.on)) {
        return std::nullopt;
      }
      only = each.what.on;
    }
  }
  return only;
}

bool use_list::have_ended() noexcept {
  const std::lock_guard hold{lock_};
  const bool all_have = std::all_of(entries_.begin(), entries_.end(),
                                    [](const entry& each) { return each.ended->settled(); });
  if (all_have) {
    may_run_.store(false, std::memory_order_release);
  }
  return all_have;
}

std::vector<ref<event>> use_list::pending(const byte_range& where) {
  std::vector<ref<event>> found;
  if (!ever_used_.load(std::memory_order_acquire)) {
    return found;
  }
  {
    const std::lock_guard hold{lock_};
    for (const auto& each : entries_) {
      if (each.what.range.overlaps(where)) {
        found.push_back(each.ended);
      }
    }
  }
  std::erase_if(found, [](const ref<event>& each) { return !each->pending(); });
  return found;
}

}  // namespace isthmus
