// SPDX-License-Identifier: Apache-2.0
#include "memory/records/use_list.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>

#include "core/expects.hpp"
#include "core/lock_guard.hpp"

namespace isthmus {

template <class Choose, class Take>
void UseList::visit_overlapping(const ByteRange& range, bool only_writes, Choose&& choose,
                                Take&& visit) {
  UseIndex::Scan at{range, only_writes};
  for (bool all = false; !all;) {
    FoundUses found;
    {
      const LockGuard hold{lock_};
      all = at.visit_next(uses_, next_number_, k_visited, [&](UseIndex::Node& each) {
        if (choose(each)) {
          found.push_back(each);
        }
      });
    }
    found.for_each(visit);
  }
}

std::uint64_t UseList::begin() {
  for (std::unique_ptr<UseIndex::Node> node;; node = std::make_unique<UseIndex::Node>()) {
    const LockGuard hold{lock_};
    if (node) {
      uses_.add_spare(std::move(node));
    }
    if (uses_.spare() > reserved_) {
      ++reserved_;
      return next_number_;
    }
  }
}

void UseList::cancel() noexcept {
  const LockGuard hold{lock_};
  ISTHMUS_EXPECTS(reserved_ != 0);
  --reserved_;
}

// Whether the newer use supersedes the older one: its end implies that of the older one, and every
// operation that conflicts with the older one conflicts with the newer one. So the newer one was
// submitted later to the same queue, or was ordered after the older one on the same device. On
// another device the newer one may end alone, when that device is lost.
bool UseList::superseded(const PendingUse& older, const Use& newer,
                         std::uint64_t began_at) noexcept {
  if (older.event->settled()) {
    return true;
  }
  const bool is_ordered = newer.follows_conflicts && newer.writes && newer.device != nullptr &&
                          older.use.device == newer.device && older.use.context == newer.context;
  const bool follows = newer.queue_serial != 0 && older.number < began_at &&
                       (older.use.queue_serial == newer.queue_serial || is_ordered);
  return follows && newer.range.covers(older.use.range) && (newer.writes || !older.use.writes);
}

// As `superseded`, for inherited work.
bool UseList::is_inherited_superseded(const Use& newer) const noexcept {
  ISTHMUS_EXPECTS(inherited_);
  return inherited_->settled() || (newer.queue_serial == inherited_queue_ && newer.writes &&
                                   newer.range.covers(inherited_range_));
}

// Visits some of the uses that `newest` follows, and marks those that it supersedes as leaving.
// Returns whether they were the last.
bool UseList::mark_superseded(UseIndex::Walk& followed, const Use& newest,
                              std::uint64_t began_at) noexcept {
  return !newest.follows_conflicts || !newest.writes ||
         followed.visit_next(uses_, k_visited, [&](UseIndex::Node& each) {
           lock_.assert_held();
           if (superseded(each, newest, began_at)) {
             uses_.mark_leaving(each);
           }
         });
}

// If its queue has many uses, extends `newest` so that it supersedes all earlier ones.
void UseList::cover_own(Use& newest, std::uint64_t began_at) const noexcept {
  std::size_t count = 0;
  auto all = newest;
  uses_.visit_queue(newest.queue_serial, [&](const UseIndex::Node& older) {
    if (older.number < began_at && !older.is_leaving && !superseded(older, newest, began_at)) {
      ++count;
      all.range.begin = std::min(all.range.begin, older.use.range.begin);
      all.range.end = std::max(all.range.end, older.use.range.end);
      all.writes = all.writes || older.use.writes;
    }
  });
  if (count >= k_max_per_queue) {
    newest = all;
  }
}

void UseList::mark_own_superseded(const Use& newest, std::uint64_t began_at) noexcept {
  uses_.visit_queue(newest.queue_serial, [&](UseIndex::Node& each) {
    lock_.assert_held();
    if (superseded(each, newest, began_at)) {
      uses_.mark_leaving(each);
    }
  });
}

UseList::Growth UseList::insert(const Use& use, const Ref<Event>& event, std::uint64_t began_at,
                                UseIndex::Walk& followed) noexcept {
  constexpr std::size_t k_examined = 4;  // > 1: ended uses leave faster than others are added
  Ref<Event> ended;                      // these are released outside the lock
  UseIndex::Chain dropped;
  PendingUse newest{use, event};
  ever_used_.store(true, std::memory_order_release);
  const LockGuard hold{lock_};
  may_run_.store(true, std::memory_order_release);
  if (inherited_ && is_inherited_superseded(use)) {
    ended = std::move(inherited_);
  }
  newest.number = next_number_++;
  ISTHMUS_EXPECTS(reserved_ != 0);  // `begin` was called
  --reserved_;
  if (uses_.size() == 1 && superseded(uses_.only(), use, began_at)) [[likely]] {
    uses_.replace_only(newest);
    return {};
  }
  bool all_followed = true;
  if (use.queue_serial != 0) {
    all_followed = mark_superseded(followed, use, began_at);
    cover_own(newest.use, began_at);
    mark_own_superseded(newest.use, began_at);
  }
  uses_.examine(k_examined);
  uses_.insert(std::move(newest));
  const bool all_dropped = uses_.drop(k_visited, dropped);
  next_scan_length_ = std::min(next_scan_length_, 2 * std::max(k_max_per_queue, uses_.size()));
  return {!all_followed, !all_dropped, uses_.size() >= next_scan_length_};
}

void UseList::drop() noexcept {
  for (bool all_dropped = false; !all_dropped;) {
    UseIndex::Chain dropped;
    const LockGuard hold{lock_};
    all_dropped = uses_.drop(k_visited, dropped);
  }
}

void UseList::drop_all_ended() noexcept {
  std::size_t remaining = 0;
  {
    const LockGuard hold{lock_};
    remaining = uses_.size();
  }
  for (std::size_t next = 0; remaining != 0; remaining -= next) {
    next = std::min(remaining, k_visited);
    UseIndex::Chain dropped;
    const LockGuard hold{lock_};
    uses_.examine(next);
    static_cast<void>(uses_.drop(k_visited, dropped));
  }
}

// Returns copies, so that drivers are queried and events joined outside the lock.
std::vector<PendingUse> UseList::find_candidates() {
  std::vector<PendingUse> found;
  std::size_t length = 0;
  {
    const LockGuard hold{lock_};
    length = uses_.size() >= next_scan_length_ ? uses_.size() : 0;
  }
  found.reserve(length);
  UseIndex::Walk at{{0, SIZE_MAX}};
  for (bool all = length == 0; !all;) {
    const LockGuard hold{lock_};
    all = at.visit_next(uses_, k_visited, [&](const UseIndex::Node& each) {
      if (!each.is_leaving && found.size() != length) {
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
  auto found = find_candidates();
  if (found.empty()) {
    return;
  }
  std::erase_if(found, [](const PendingUse& each) { return !each.event->pending(); });
  drop_all_ended();
  drop();
  if (found.size() >= k_many) {
    join(std::move(found));
  }
  const LockGuard hold{lock_};
  next_scan_length_ = 2 * std::max(k_max_per_queue, uses_.size());
} catch (const std::bad_alloc&) {
  // The list is not shortened.
}

// Joins only uses that conflict with the same operations and that were joined equally often, so
// that the events that represent several uses form a tree of logarithmic depth.
void UseList::join(std::vector<PendingUse> found) {
  const auto kind = [](const PendingUse& pending) {
    const auto& use = pending.use;
    return std::tuple{pending.joins, use.range.begin, use.range.end, use.writes,
                      use.is_previous_owners};
  };
  std::erase_if(found, [](const PendingUse& each) { return each.event->native() != nullptr; });
  while (!found.empty()) {
    std::ranges::sort(found, {}, kind);
    std::vector<PendingUse> joined;
    for (std::span<const PendingUse> remaining{found}; !remaining.empty();) {
      const auto alike = static_cast<std::size_t>(
          std::ranges::upper_bound(remaining, kind(remaining.front()), {}, kind) -
          remaining.begin());
      for (std::size_t at = 0; at + k_joined <= alike; at += k_joined) {
        joined.push_back(join_uses(remaining.subspan(at, k_joined)));
      }
      remaining = remaining.subspan(alike);
    }
    found = std::move(joined);
  }
}

// A use that was dropped meanwhile has ended, or a later use of its queue represents it.
PendingUse UseList::join_uses(std::span<const PendingUse> uses) {
  std::vector<Ref<Event>> ends;
  PendingUse joined{uses.front().use, nullptr, 0, uses.front().joins + 1};
  joined.use.queue_serial = 0;
  joined.use.device = nullptr;
  for (const auto& each : uses) {
    ends.push_back(each.event);
  }
  joined.event = end_of_all(ends);
  auto spare = std::make_unique<UseIndex::Node>();
  UseIndex::Chain removed;
  const LockGuard hold{lock_};
  uses_.add_spare(std::move(spare));
  for (const auto& each : uses) {
    if (auto* const node = uses_.find(each); node != nullptr && !node->is_leaving) {
      uses_.remove(*node, removed);
    }
  }
  if (!removed.empty()) {
    joined.number = next_number_++;
    uses_.insert(joined);
  }
  return joined;
}

void UseList::add(const Use& use, const Ref<Event>& event, std::uint64_t began_at) noexcept {
  UseIndex::Walk followed{use.range};
  const auto growth = insert(use, event, began_at, followed);
  for (bool all_followed = !growth.has_more_superseded; !all_followed;) {
    UseIndex::Chain dropped;
    const LockGuard hold{lock_};
    all_followed = mark_superseded(followed, use, began_at);
    static_cast<void>(uses_.drop(k_visited, dropped));
  }
  if (growth.has_leaving) {
    drop();
  }
  if (growth.is_due) {
    shorten();
  }
}

// All operations get the number of the first one, since a later one must not replace an earlier
// one.
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
  const LockGuard hold{lock_};
  return inherited_;
}

void UseList::collect(const Use& wanted, std::vector<Ref<Event>>& out) {
  if (!may_run_.load(std::memory_order_acquire)) {
    return;
  }
  std::vector<Ref<Event>> previous_owners;
  if (auto before = inherited_end(); before && inherited_queue_ != wanted.queue_serial &&
                                     inherited_range_.overlaps(wanted.range) &&
                                     !before->settled()) {
    previous_owners.push_back(std::move(before));
  }
  bool has_leaving = false;
  const auto must_wait = [&](UseIndex::Node& other) {
    lock_.assert_held();
    if (other.event->settled()) {
      uses_.mark_leaving(other);
      has_leaving = true;
    }
    return !other.is_leaving &&
           (wanted.queue_serial == 0 || other.use.queue_serial != wanted.queue_serial);
  };
  visit_overlapping(wanted.range, !wanted.writes, must_wait,
                    [&](Ref<Event> event, bool is_previous_owners) {
                      (is_previous_owners ? previous_owners : out).push_back(std::move(event));
                    });
  if (has_leaving) {
    drop();
  }
  if (!previous_owners.empty()) {
    out.push_back(end_of_all(previous_owners));
  }
}

std::optional<std::uint64_t> UseList::only_queue() noexcept {
  std::uint64_t only = 0;
  bool are_several = false;
  const auto record = [&](std::uint64_t key) {
    are_several = are_several || key == 0 || (only != 0 && only != key);
    only = key;
  };
  UseIndex::Scan at{{0, SIZE_MAX}};
  for (bool all = false; !all && !are_several;) {
    const LockGuard hold{lock_};
    if (inherited_ && !inherited_->settled()) {
      record(inherited_queue_);
    }
    all = at.visit_next(uses_, next_number_, k_visited, [&](const UseIndex::Node& each) {
      if (!each.is_leaving && !each.event->settled()) {
        record(each.use.queue_serial);
      }
    });
  }
  return are_several ? std::nullopt : std::optional{only};
}

bool UseList::have_ended() noexcept {
  Ref<Event> event;  // released outside the lock
  for (;;) {
    const LockGuard hold{lock_};
    if (inherited_ && inherited_->settled()) {
      event = std::move(inherited_);
    }
    if (inherited_) {
      return false;
    }
    if (!uses_.mark_first_ended(k_visited)) {
      continue;
    }
    const bool all_have = uses_.are_all_leaving();
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
      range, false, [](const UseIndex::Node& each) { return !each.is_leaving; },
      [&](Ref<Event> event, bool) { found.push_back(std::move(event)); });
  std::erase_if(found, [](const Ref<Event>& each) { return !each->pending(); });
  return found;
}

}  // namespace isthmus
