// SPDX-License-Identifier: Apache-2.0
#include "memory/use_list.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

namespace isthmus {

template <class Choose, class Take>
void use_list::visit_overlapping(const byte_range& range, bool only_writes, Choose&& choose,
                                 Take&& take) {
  use_index::scan at{range, only_writes};
  for (bool all = false; !all;) {
    found_uses found;
    {
      const std::lock_guard hold{lock_};
      all = at.visit_next(uses_, next_number_, k_visited, [&](use_index::node& each) {
        if (choose(each)) {
          found.push_back(each);
        }
      });
    }
    found.for_each(take);
  }
}

std::uint64_t use_list::begin() {
  for (std::unique_ptr<use_index::node> made;; made = std::make_unique<use_index::node>()) {
    const std::lock_guard hold{lock_};
    if (made) {
      uses_.add_spare(std::move(made));
    }
    if (uses_.spare() > promised_) {
      ++promised_;
      return next_number_;
    }
  }
}

void use_list::give_up() noexcept {
  const std::lock_guard hold{lock_};
  --promised_;
}

// Whether the newer use's end implies the older one's, and whatever conflicts with the older one
// conflicts with the newer: it was submitted later to the same queue, or was ordered after it on
// the same device. On another device the newer one may end alone, when that device is lost.
bool use_list::superseded(const pending_use& older, const use& newer,
                          std::uint64_t began_at) noexcept {
  if (older.ended->settled()) {
    return true;
  }
  const bool is_ordered = newer.follows_conflicts && newer.writes && newer.where != nullptr &&
                          older.what.where == newer.where && older.what.home == newer.home;
  const bool follows =
      newer.on != 0 && older.number < began_at && (older.what.on == newer.on || is_ordered);
  return follows && newer.range.covers(older.what.range) && (newer.writes || !older.what.writes);
}

// As `superseded`, for what was inherited. Pre: there is some; the lock is held.
bool use_list::is_inherited_over(const use& newer) const noexcept {
  return inherited_->settled() ||
         (newer.on == inherited_on_ && newer.writes && newer.range.covers(inherited_range_));
}

// Visits some of the uses that `newest` follows; returns whether they were the last. Pre, also of
// the next two: the lock is held.
bool use_list::let_some_leave(use_index::walk& followed, const use& newest,
                              std::uint64_t began_at) noexcept {
  return !newest.follows_conflicts || !newest.writes ||
         followed.visit_next(uses_, k_visited, [&](use_index::node& each) {
           if (superseded(each, newest, began_at)) {
             uses_.let_leave(each);
           }
         });
}

// If its queue has many uses, extends `newest` so that it supersedes all earlier ones.
void use_list::cover_own(use& newest, std::uint64_t began_at) const noexcept {
  std::size_t count = 0;
  auto all = newest;
  uses_.visit_queue(newest.on, [&](const use_index::node& older) {
    if (older.number < began_at && !older.leaves && !superseded(older, newest, began_at)) {
      ++count;
      all.range.begin = std::min(all.range.begin, older.what.range.begin);
      all.range.end = std::max(all.range.end, older.what.range.end);
      all.writes = all.writes || older.what.writes;
    }
  });
  if (count >= k_longest) {
    newest = all;
  }
}

void use_list::let_own_leave(const use& newest, std::uint64_t began_at) noexcept {
  uses_.visit_queue(newest.on, [&](use_index::node& each) {
    if (superseded(each, newest, began_at)) {
      uses_.let_leave(each);
    }
  });
}

use_list::growth use_list::insert(const use& what, const ref<event>& ended, std::uint64_t began_at,
                                  use_index::walk& followed) noexcept {
  constexpr std::size_t k_looks = 4;  // > 1: ended uses leave faster than new ones come
  ref<event> over;                    // these are released outside the lock
  use_index::chain gone;
  pending_use newest{what, ended};
  ever_used_.store(true, std::memory_order_release);
  const std::lock_guard hold{lock_};
  may_run_.store(true, std::memory_order_release);
  if (inherited_ && is_inherited_over(what)) {
    over = std::move(inherited_);
  }
  newest.number = next_number_++;
  --promised_;
  if (uses_.size() == 1 && superseded(uses_.only(), what, began_at)) [[likely]] {
    uses_.replace_only(newest);
    return {};
  }
  bool all_followed = true;
  if (what.on != 0) {
    all_followed = let_some_leave(followed, what, began_at);
    cover_own(newest.what, began_at);
    let_own_leave(newest.what, began_at);
  }
  uses_.look_at(k_looks);
  uses_.insert(std::move(newest));
  const bool all_left = uses_.drop(k_visited, gone);
  next_look_ = std::min(next_look_, 2 * std::max(k_longest, uses_.size()));
  return {!all_followed, !all_left, uses_.size() >= next_look_};
}

void use_list::drop() noexcept {
  for (bool all_left = false; !all_left;) {
    use_index::chain gone;
    const std::lock_guard hold{lock_};
    all_left = uses_.drop(k_visited, gone);
  }
}

void use_list::let_all_ended_leave() noexcept {
  std::size_t left = 0;
  {
    const std::lock_guard hold{lock_};
    left = uses_.size();
  }
  for (std::size_t next = 0; left != 0; left -= next) {
    next = std::min(left, k_visited);
    use_index::chain gone;
    const std::lock_guard hold{lock_};
    uses_.look_at(next);
    static_cast<void>(uses_.drop(k_visited, gone));
  }
}

// Returns copies, so that drivers are queried and events joined outside the lock.
std::vector<pending_use> use_list::what_may_have_ended() {
  std::vector<pending_use> found;
  std::size_t length = 0;
  {
    const std::lock_guard hold{lock_};
    length = uses_.size() >= next_look_ ? uses_.size() : 0;
  }
  found.reserve(length);
  use_index::walk at{{0, SIZE_MAX}};
  for (bool all = length == 0; !all;) {
    const std::lock_guard hold{lock_};
    all = at.visit_next(uses_, k_visited, [&](const use_index::node& each) {
      if (!each.leaves && found.size() != length) {
        found.push_back(each);
      }
    });
    all = all || found.size() == length;
  }
  return found;
}

void use_list::shorten() noexcept try {
  if (in_continuation()) {
    return;
  }
  auto found = what_may_have_ended();
  if (found.empty()) {
    return;
  }
  std::erase_if(found, [](const pending_use& each) { return !each.ended->pending(); });
  let_all_ended_leave();
  drop();
  if (found.size() >= k_many) {
    join(std::move(found));
  }
  const std::lock_guard hold{lock_};
  next_look_ = 2 * std::max(k_longest, uses_.size());
} catch (const std::bad_alloc&) {
  // The list stays long.
}

// Joins only uses that conflict with the same operations and that were joined equally often, so
// that the events that stand for several form a tree of logarithmic depth.
void use_list::join(std::vector<pending_use> found) {
  const auto kind = [](const pending_use& of) {
    const auto& what = of.what;
    return std::tuple{of.joins, what.range.begin, what.range.end, what.writes, what.is_of_others};
  };
  std::erase_if(found, [](const pending_use& each) { return each.ended->native() != nullptr; });
  while (!found.empty()) {
    std::ranges::sort(found, {}, kind);
    std::vector<pending_use> made;
    for (std::span<const pending_use> left{found}; !left.empty();) {
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

// A use that was dropped meanwhile has ended, or a later use of its queue stands for it.
pending_use use_list::join_few(std::span<const pending_use> few) {
  std::vector<ref<event>> ends;
  pending_use whole{few.front().what, nullptr, 0, few.front().joins + 1};
  whole.what.on = 0;
  whole.what.where = nullptr;
  for (const auto& each : few) {
    ends.push_back(each.ended);
  }
  whole.ended = end_of_all(ends);
  auto place = std::make_unique<use_index::node>();
  use_index::chain gone;
  const std::lock_guard hold{lock_};
  uses_.add_spare(std::move(place));
  for (const auto& each : few) {
    if (auto* const there = uses_.find(each); there != nullptr && !there->leaves) {
      uses_.remove(*there, gone);
    }
  }
  if (!gone.empty()) {
    whole.number = next_number_++;
    uses_.insert(whole);
  }
  return whole;
}

void use_list::add(const use& what, const ref<event>& ended, std::uint64_t began_at) noexcept {
  use_index::walk followed{what.range};
  const auto now = insert(what, ended, began_at, followed);
  for (bool all_followed = !now.follows_more; !all_followed;) {
    use_index::chain gone;
    const std::lock_guard hold{lock_};
    all_followed = let_some_leave(followed, what, began_at);
    static_cast<void>(uses_.drop(k_visited, gone));
  }
  if (now.leaves_some) {
    drop();
  }
  if (now.is_due) {
    shorten();
  }
}

// All have the number of the first one: a later one must not replace an earlier one.
void use_list::add_all(const use& what, const std::vector<ref<event>>& ends) {
  std::optional<std::uint64_t> first;
  for (const auto& each : ends) {
    const auto began_at = begin();
    add(what, each, first.value_or(began_at));
    first = first.value_or(began_at);
  }
}

ref<event> use_list::inherited_end() noexcept {
  if (!inherits()) {
    return {};
  }
  const std::lock_guard hold{lock_};
  return inherited_;
}

void use_list::collect(const use& wanted, std::vector<ref<event>>& out) {
  if (!may_run_.load(std::memory_order_acquire)) {
    return;
  }
  std::vector<ref<event>> of_others;
  if (auto before = inherited_end(); before && inherited_on_ != wanted.on &&
                                     inherited_range_.overlaps(wanted.range) &&
                                     !before->settled()) {
    of_others.push_back(std::move(before));
  }
  bool some_leave = false;
  const auto must_wait = [&](use_index::node& other) {
    if (other.ended->settled()) {
      uses_.let_leave(other);
      some_leave = true;
    }
    return !other.leaves && (wanted.on == 0 || other.what.on != wanted.on);
  };
  visit_overlapping(wanted.range, !wanted.writes, must_wait,
                    [&](ref<event> ended, bool is_of_others) {
                      (is_of_others ? of_others : out).push_back(std::move(ended));
                    });
  if (some_leave) {
    drop();
  }
  if (!of_others.empty()) {
    out.push_back(end_of_all(of_others));
  }
}

std::optional<std::uint64_t> use_list::only_queue() noexcept {
  std::uint64_t only = 0;
  bool are_several = false;
  const auto note = [&](std::uint64_t on) {
    are_several = are_several || on == 0 || (only != 0 && only != on);
    only = on;
  };
  use_index::scan at{{0, SIZE_MAX}};
  for (bool all = false; !all && !are_several;) {
    const std::lock_guard hold{lock_};
    if (inherited_ && !inherited_->settled()) {
      note(inherited_on_);
    }
    all = at.visit_next(uses_, next_number_, k_visited, [&](const use_index::node& each) {
      if (!each.leaves && !each.ended->settled()) {
        note(each.what.on);
      }
    });
  }
  return are_several ? std::nullopt : std::optional{only};
}

bool use_list::have_ended() noexcept {
  ref<event> ended;  // released outside the lock
  for (;;) {
    const std::lock_guard hold{lock_};
    if (inherited_ && inherited_->settled()) {
      ended = std::move(inherited_);
    }
    if (inherited_) {
      return false;
    }
    if (!uses_.let_first_leave(k_visited)) {
      continue;
    }
    const bool all_have = uses_.all_leave();
    if (all_have && !contents_.any()) {  // a failed copy is still to be reported
      may_run_.store(false, std::memory_order_release);
    }
    return all_have;
  }
}

std::vector<ref<event>> use_list::pending(const byte_range& where) {
  std::vector<ref<event>> found;
  if (!may_run_.load(std::memory_order_acquire)) {
    return found;
  }
  if (auto before = inherited_end(); before && inherited_range_.overlaps(where)) {
    found.push_back(std::move(before));
  }
  visit_overlapping(
      where, false, [](const use_index::node& each) { return !each.leaves; },
      [&](ref<event> ended, bool) { found.push_back(std::move(ended)); });
  std::erase_if(found, [](const ref<event>& each) { return !each->pending(); });
  return found;
}

}  // namespace isthmus
