#include "memory/use_list.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <tuple>
#include <utility>

#include "core/promised_room.hpp"

namespace isthmus {

std::uint64_t use_list::begin() { return promise_room(entries_, lock_, promised_, next_number_); }

void use_list::give_up() noexcept {
  const std::lock_guard hold{lock_};
  --promised_;
}

// The newer one's end implies the older one's: same queue, submitted before, and whoever conflicts
// with the older conflicts with the newer.
bool use_list::superseded(const entry& older, const use& newer, std::uint64_t began_at) noexcept {
  return older.ended->settled() ||
         (newer.on != 0 && older.what.on == newer.on && older.number < began_at &&
          newer.range.covers(older.what.range) && (newer.writes || !older.what.writes));
}

// As `superseded`, of what was inherited. Pre: there is some; the lock is held.
bool use_list::is_inherited_over(const use& newer) const noexcept {
  return inherited_->settled() ||
         (newer.on == inherited_on_ && newer.writes && newer.range.covers(inherited_range_));
}

// Afterwards `newest` supersedes all earlier ones of its queue. Pre: it has one; the lock is held.
void use_list::cover_own(use& newest, std::uint64_t began_at) const noexcept {
  for (const auto& older : entries_) {
    if (older.what.on == newest.on && older.number < began_at) {
      newest.range.begin = std::min(newest.range.begin, older.what.range.begin);
      newest.range.end = std::max(newest.range.end, older.what.range.end);
      newest.writes = newest.writes || older.what.writes;
    }
  }
}

// Moves those that `leaves` accepts to `gone`, as many as it takes: the caller drops the references
// outside the lock. Those that stay for lack of space cost waits that are not needed, and leave
// with a later use. Returns how many were moved. Pre: the lock is held.
template <class Leaves>
std::size_t use_list::take_out(std::span<entry> gone, Leaves&& leaves) noexcept {
  std::size_t count = 0;
  auto left = entries_.begin();
  for (auto& each : entries_) {
    if (count < gone.size() && leaves(std::as_const(each))) {
      gone[count++] = std::move(each);
    } else {
      if (&*left != &each) {
        *left = std::move(each);
      }
      ++left;
    }
  }
  entries_.erase(left, entries_.end());
  return count;
}

use_list::growth use_list::insert(use& what, const ref<event>& ended,
                                  std::uint64_t began_at) noexcept {
  entry newest{what, ended};
  ref<event> over;  // dropped outside the lock
  ever_used_.store(true, std::memory_order_release);
  {
    const std::lock_guard hold{lock_};
    may_run_.store(true, std::memory_order_release);
    if (inherited_ && is_inherited_over(what)) {
      over = std::move(inherited_);
    }
    if (entries_.size() == 1 && superseded(entries_.front(), what, began_at)) [[likely]] {
      newest.number = next_number_++;
      --promised_;
      std::swap(entries_.front(), newest);
      return {};
    }
  }
  std::array<entry, 4> gone;
  const std::lock_guard hold{lock_};
  may_run_.store(true, std::memory_order_release);
  newest.number = next_number_++;
  --promised_;
  // What is of no queue supersedes only what has ended, which leaves a long list when it is due.
  if (what.on != 0 || entries_.size() < k_longest) {
    take_out(gone, [&](const entry& older) { return superseded(older, what, began_at); });
  }
  const bool is_widened = what.on != 0 && entries_.size() >= k_longest;
  if (is_widened) {
    cover_own(what, began_at);
    newest.what = what;
  }
  entries_.push_back(std::move(newest));
  return {is_widened, entries_.size() >= next_look_};
}

void use_list::drop_superseded(const use& by, std::uint64_t began_at) noexcept {
  std::array<entry, k_longest> gone;
  const std::lock_guard hold{lock_};
  take_out(gone, [&](const entry& older) { return superseded(older, by, began_at); });
}

// Copies, so that drivers are queried, and events joined, outside the lock.
std::vector<use_list::entry> use_list::what_may_have_ended() {
  std::vector<entry> found;
  std::size_t length = 0;
  {
    const std::lock_guard hold{lock_};
    length = entries_.size() >= next_look_ ? entries_.size() : 0;
  }
  found.reserve(length);
  const std::lock_guard hold{lock_};
  length = std::min(length, entries_.size());
  found.assign(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(length));
  return found;
}

void use_list::shorten() noexcept try {
  auto found = what_may_have_ended();
  if (found.empty() || in_continuation()) {
    return;
  }
  std::vector<entry> gone(found.size());
  std::erase_if(found, [](const entry& each) { return !each.ended->pending(); });
  {
    const std::lock_guard hold{lock_};
    take_out(gone, [](const entry& each) { return each.ended->settled(); });
  }
  if (found.size() >= k_many) {
    join(std::move(found));
  }
  const std::lock_guard hold{lock_};
  next_look_ = 2 * std::max(k_longest, entries_.size());
} catch (const std::bad_alloc&) {
  // It stays long.
}

// Only uses that the same operations conflict with, and that were joined equally often, so that the
// events which stand for others form a tree of logarithmic depth.
void use_list::join(std::vector<entry> found) {
  const auto kind = [](const entry& of) {
    const auto& [on, range, writes, is_of_others] = of.what;
    return std::tuple{of.joins, range.begin, range.end, writes, is_of_others};
  };
  std::erase_if(found, [](const entry& each) { return each.ended->native() != nullptr; });
  while (!found.empty()) {
    std::ranges::sort(found, {}, kind);
    std::vector<entry> made;
    for (std::span<const entry> left{found}; !left.empty();) {
      const auto alike = static_cast<std::size_t>(
          std::ranges::upper_bound(left, kind(left.front()), {}, kind) - left.begin());
      for (std::size_t at = 0; at + k_joined <= alike; at += k_joined) {
        made.push_back(join_few(left.subspan(at, k_joined)));
      }
      left = left.subspan(alike);
    }
    found = std::move(made);
  }
}

// One that was dropped meanwhile has ended, or a later use of its queue stands for it. It takes the
// place of one of those that it stands for.
use_list::entry use_list::join_few(std::span<const entry> few) {
  std::vector<ref<event>> ends;
  std::vector<std::uint64_t> numbers;
  entry whole{few.front().what, nullptr, 0, few.front().joins + 1};
  whole.what.on = 0;
  for (const auto& each : few) {
    ends.push_back(each.ended);
    numbers.push_back(each.number);
  }
  std::ranges::sort(numbers);
  whole.ended = end_of_all(ends);
  std::array<entry, k_joined> gone;
  const std::lock_guard hold{lock_};
  const auto is_joined = [&](const entry& each) {
    return std::ranges::binary_search(numbers, each.number);
  };
  if (take_out(gone, is_joined) != 0) {
    whole.number = next_number_++;
    entries_.push_back(whole);
  }
  return whole;
}

void use_list::add(const use& what, const ref<event>& ended, std::uint64_t began_at) noexcept {
  auto widened = what;
  const auto now = insert(widened, ended, began_at);
  if (now.is_widened) {
    drop_superseded(widened, began_at);
  }
  if (now.is_due) {
    shorten();
  }
}

// All with the number of the first: a later one must not replace an earlier one.
void use_list::add_all(const use& what, const std::vector<ref<event>>& ends) {
  std::optional<std::uint64_t> first;
  for (const auto& each : ends) {
    const auto began_at = begin();
    add(what, each, first.value_or(began_at));
    first = first.value_or(began_at);
  }
}

void use_list::collect(const use& wanted, std::vector<ref<event>>& out) {
  if (!may_run_.load(std::memory_order_acquire)) {
    return;
  }
  std::vector<ref<event>> of_others;
  {
    const std::lock_guard hold{lock_};
    if (inherited_ && inherited_on_ != wanted.on && inherited_range_.overlaps(wanted.range) &&
        !inherited_->settled()) {
      of_others.push_back(inherited_);
    }
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
  std::uint64_t only = inherited_ && !inherited_->settled() ? inherited_on_ : 0;
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
  ref<event> ended;  // dropped outside the lock
  const std::lock_guard hold{lock_};
  if (inherited_ && inherited_->settled()) {
    ended = std::move(inherited_);
  }
  const bool all_have =
      !inherited_ && std::all_of(entries_.begin(), entries_.end(),
                                 [](const entry& each) { return each.ended->settled(); });
  if (all_have) {
    may_run_.store(false, std::memory_order_release);
  }
  return all_have;
}

std::vector<ref<event>> use_list::pending(const byte_range& where) {
  std::vector<ref<event>> found;
  if (!may_run_.load(std::memory_order_acquire)) {
    return found;
  }
  {
    const std::lock_guard hold{lock_};
    if (inherited_ && inherited_range_.overlaps(where)) {
      found.push_back(inherited_);
    }
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
