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
void UseList::visit_overlapping(const ByteRange& range, bool only_writes, Choose&& choose,
                                Take&& take) {
  UseIndex::Scan at{range, only_writes};
  for (bool all = false; !all;) {
    FoundUses found;
    {
      const std::lock_guard hold{lock_};
      all = at.visit_next(uses_, next_number_, k_visited, [&](UseIndex::Node& each) {
        if (choose(each)) {
          found.push_back(each);
        }
      });
    }
    found.for_each(take);
  }
}

std::uint64_t UseList::begin() {
  for (std::unique_ptr<UseIndex::Node> made;; made = std::make_unique<UseIndex::Node>()) {
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

void UseList::give_up() noexcept {
  const std::lock_guard hold{lock_};
  --promised_;
}

// Whether the newer use's end implies the older one's, and whatever conflicts with the older one
// conflicts with the newer: it was submitted later to the same queue, or was ordered after it on
// the same device. On another device the newer one may end alone, when that device is lost.
bool UseList::superseded(const PendingUse& older, const Use& newer,
                         std::uint64_t began_at) noexcept {
  if (older.ended->settled()) {
    return true;
  }
  const bool is_ordered = newer.follows_conflicts && newer.writes && newer.device != nullptr &&
                          older.what.device == newer.device && older.what.context == newer.context;
  const bool follows =
      newer.on != 0 && older.number < began_at && (older.what.on == newer.on || is_ordered);
  return follows && newer.range.covers(older.what.range) && (newer.writes || !older.what.writes);
}

// As `superseded`, for what was inherited. Pre: there is some; the lock is held.
bool UseList::is_inherited_over(const Use& newer) const noexcept {
  return inherited_->settled() ||
         (newer.on == inherited_on_ && newer.writes && newer.range.covers(inherited_range_));
}

// Visits some of the uses that `newest` follows; returns whether they were the last. Pre, also of
// the next two: the lock is held.
bool UseList::let_some_leave(UseIndex::Walk& followed, const Use& newest,
                             std::uint64_t began_at) noexcept {
  return !newest.follows_conflicts || !newest.writes ||
         followed.visit_next(uses_, k_visited, [&](UseIndex::Node& each) {
           if (superseded(each, newest, began_at)) {
             uses_.let_leave(each);
           }
         });
}

// If its queue has many uses, extends `newest` so that it supersedes all earlier ones.
void UseList::cover_own(Use& newest, std::uint64_t began_at) const noexcept {
  std::size_t count = 0;
  auto all = newest;
  uses_.visit_queue(newest.on, [&](const UseIndex::Node& older) {
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

void UseList::let_own_leave(const Use& newest, std::uint64_t began_at) noexcept {
  uses_.visit_queue(newest.on, [&](UseIndex::Node& each) {
    if (superseded(each, newest, began_at)) {
      uses_.let_leave(each);
    }
  });
}

UseList::Growth UseList::insert(const Use& use, const Ref<Event>& ended, std::uint64_t began_at,
                                UseIndex::Walk& followed) noexcept {
  constexpr std::size_t k_looks = 4;  // > 1: ended uses leave faster than new ones come
  Ref<Event> over;                    // these are released outside the lock
  UseIndex::Chain gone;
  PendingUse newest{use, ended};
  ever_used_.store(true, std::memory_order_release);
  const std::lock_guard hold{lock_};
  may_run_.store(true, std::memory_order_release);
  if (inherited_ && is_inherited_over(use)) {
    over = std::move(inherited_);
  }
  newest.number = next_number_++;
  --promised_;
  if (uses_.size() == 1 && superseded(uses_.only(), use, began_at)) [[likely]] {
    uses_.replace_only(newest);
    return {};
  }
  bool all_followed = true;
  if (use.on != 0) {
    all_followed = let_some_leave(followed, use, began_at);
    cover_own(newest.what, began_at);
    let_own_leave(newest.what, began_at);
  }
  uses_.look_at(k_looks);
  uses_.insert(std::move(newest));
  const bool all_left = uses_.drop(k_visited, gone);
  next_look_ = std::min(next_look_, 2 * std::max(k_longest, uses_.size()));
  return {!all_followed, !all_left, uses_.size() >= next_look_};
}

void UseList::drop() noexcept {
  for (bool all_left = false; !all_left;) {
    UseIndex::Chain gone;
    const std::lock_guard hold{lock_};
    all_left = uses_.drop(k_visited, gone);
  }
}

void UseList::let_all_ended_leave() noexcept {
  std::size_t left = 0;
  {
    const std::lock_guard hold{lock_};
    left = uses_.size();
  }
  for (std::size_t next = 0; left != 0; left -= next) {
    next = std::min(left, k_visited);
    UseIndex::Chain gone;
    const std::lock_guard hold{lock_};
    uses_.look_at(next);
    static_cast<void>(uses_.drop(k_visited, gone));
  }
}

// Returns copies, so that drivers are queried and events joined outside the lock.
std::vector<PendingUse> UseList::what_may_have_ended() {
  std::vector<PendingUse> found;
  std::size_t length = 0;
  {
    const std::lock_guard hold{lock_};
    length = uses_.size() >= next_look_ ? uses_.size() : 0;
  }
  found.reserve(length);
  UseIndex::Walk at{{0, SIZE_MAX}};
  for (bool all = length == 0; !all;) {
    const std::lock_guard hold{lock_};
    all = at.visit_next(uses_, k_visited, [&](const UseIndex::Node& each) {
      if (!each.leaves && found.size() != length) {
        found.push_back(each);
      }
    });
    all = all || found.size() == length;
  }
  return found;
}

void UseList::shorten() noexcept try {
  if (in_continuation()) {
    return;
  }
  auto found = what_may_have_ended();
  if (found.empty()) {
    return;
  }
  std::erase_if(found, [](const PendingUse& each) { return !each.ended->pending(); });
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
void UseList::join(std::vector<PendingUse> found) {
  const auto kind = [](const PendingUse& use) {
    const auto& what = use.what;
    return std::tuple{use.joins, what.range.begin, what.range.end, what.writes, what.is_of_others};
  };
  std::erase_if(found, [](const PendingUse& each) { return each.ended->native() != nullptr; });
  while (!found.empty()) {
    std::ranges::sort(found, {}, kind);
    std::vector<PendingUse> made;
    for (std::span<const PendingUse> left{found}; !left.empty();) {
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
PendingUse UseList::join_few(std::span<const PendingUse> few) {
  std::vector<Ref<Event>> ends;
  PendingUse whole{few.front().what, nullptr, 0, few.front().joins + 1};
  whole.what.on = 0;
  whole.what.device = nullptr;
  for (const auto& each : few) {
    ends.push_back(each.ended);
  }
  whole.ended = end_of_all(ends);
  auto place = std::make_unique<UseIndex::Node>();
  UseIndex::Chain gone;
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

void UseList::add(const Use& use, const Ref<Event>& ended, std::uint64_t began_at) noexcept {
  UseIndex::Walk followed{use.range};
  const auto now = insert(use, ended, began_at, followed);
  for (bool all_followed = !now.follows_more; !all_followed;) {
    UseIndex::Chain gone;
    const std::lock_guard hold{lock_};
    all_followed = let_some_leave(followed, use, began_at);
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
void UseList::add_all(const Use& use, const std::vector<Ref<Event>>& ends) {
  std::optional<std::uint64_t> first;
  for (const auto& each : ends) {
    const auto began_at = begin();
    add(use, each, first.value_or(began_at));
    first = first.value_or(began_at);
  }
}

Ref<Event> UseList::inherited_end() noexcept {
  if (!inherits()) {
    return {};
  }
  const std::lock_guard hold{lock_};
  return inherited_;
}

void UseList::collect(const Use& wanted, std::vector<Ref<Event>>& out) {
  if (!may_run_.load(std::memory_order_acquire)) {
    return;
  }
  std::vector<Ref<Event>> of_others;
  if (auto before = inherited_end(); before && inherited_on_ != wanted.on &&
                                     inherited_range_.overlaps(wanted.range) &&
                                     !before->settled()) {
    of_others.push_back(std::move(before));
  }
  bool some_leave = false;
  const auto must_wait = [&](UseIndex::Node& other) {
    if (other.ended->settled()) {
      uses_.let_leave(other);
      some_leave = true;
    }
    return !other.leaves && (wanted.on == 0 || other.what.on != wanted.on);
  };
  visit_overlapping(wanted.range, !wanted.writes, must_wait,
                    [&](Ref<Event> ended, bool is_of_others) {
                      (is_of_others ? of_others : out).push_back(std::move(ended));
                    });
  if (some_leave) {
    drop();
  }
  if (!of_others.empty()) {
    out.push_back(end_of_all(of_others));
  }
}

std::optional<std::uint64_t> UseList::only_queue() noexcept {
  std::uint64_t only = 0;
  bool are_several = false;
  const auto note = [&](std::uint64_t key) {
    are_several = are_several || key == 0 || (only != 0 && only != key);
    only = key;
  };
  UseIndex::Scan at{{0, SIZE_MAX}};
  for (bool all = false; !all && !are_several;) {
    const std::lock_guard hold{lock_};
    if (inherited_ && !inherited_->settled()) {
      note(inherited_on_);
    }
    all = at.visit_next(uses_, next_number_, k_visited, [&](const UseIndex::Node& each) {
      if (!each.leaves && !each.ended->settled()) {
        note(each.what.on);
      }
    });
  }
  return are_several ? std::nullopt : std::optional{only};
}

bool UseList::have_ended() noexcept {
  Ref<Event> ended;  // released outside the lock
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

std::vector<Ref<Event>> UseList::pending(const ByteRange& range) {
  std::vector<Ref<Event>> found;
  if (!may_run_.load(std::memory_order_acquire)) {
    return found;
  }
  if (auto before = inherited_end(); before && inherited_range_.overlaps(range)) {
    found.push_back(std::move(before));
  }
  visit_overlapping(
      range, false, [](const UseIndex::Node& each) { return !each.leaves; },
      [&](Ref<Event> ended, bool) { found.push_back(std::move(ended)); });
  std::erase_if(found, [](const Ref<Event>& each) { return !each->pending(); });
  return found;
}

}  // namespace isthmus
