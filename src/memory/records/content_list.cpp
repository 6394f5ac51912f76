// SPDX-License-Identifier: Apache-2.0
#include "memory/records/content_list.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "core/expects.hpp"
#include "core/lock_guard.hpp"

namespace isthmus {
namespace {

// Limits of the cleanup in one call, so that the lock is held only briefly: the number of entries
// inspected, and the number of those that could not be dropped.
constexpr int k_max_scanned = 256;
constexpr int k_max_retained = 4;

bool has_failed(const Event& event) noexcept { return event.settled() && !event.succeeded(); }

}  // namespace

ContentList::Seat::Seat() : node_(1) {
  auto& entry = node_.front();
  entry.self = node_.begin();
  entry.index_seat = Index::make_entry({}, 0, entry);
}

ContentList::Seat::~Seat() = default;

void ContentList::Entry::drop_failed(EventList& dropped) noexcept {
  while (!written.empty() && has_failed(*written.front())) {
    dropped.splice(dropped.end(), written, written.begin());
  }
}

// Only the first write is inspected, since later ones usually complete later.
bool ContentList::Entry::is_finished() const noexcept {
  return filled->succeeded() || (!written.empty() && written.front()->succeeded());
}

bool ContentList::Entry::is_dependency() const noexcept {
  return std::ranges::all_of(written, [](const auto& each) { return has_failed(*each); });
}

bool ContentList::Entry::remove_ranges(const RangeSet& removed) noexcept try {
  ranges.remove(removed);
  return ranges.empty();
} catch (const std::bad_alloc&) {
  return false;
}

void ContentList::add(EntryList& source, Entry& added) noexcept {
  index_.add(std::move(added.index_seat), added.ranges.span(), added.number);
  entries_.splice(entries_.end(), source, added.self);
}

void ContentList::extract(Entry& entry, EntryList& target) noexcept {
  entry.index_seat = index_.extract(entry.ranges.span(), entry.number);
  target.splice(target.end(), entries_, entry.self);
}

// Each entry is removed from the index while its ranges change, since they determine its index key.
void ContentList::remove(const RangeSet& ranges, RemovedEntries& removed) noexcept {
  EntryList found;
  index_.visit_near(ranges.span(), [&](Entry& each) {
    lock_.assert_held();
    found.splice(found.end(), entries_, each.self);
  });
  while (!found.empty()) {
    auto& each = found.front();
    each.drop_failed(removed.writes);
    each.index_seat = index_.extract(each.ranges.span(), each.number);
    if (each.is_finished() || each.remove_ranges(ranges)) {
      removed.entries.splice(removed.entries.end(), found, each.self);
    } else {
      add(found, each);
    }
  }
}

// Throws std::bad_alloc, in which case nothing was changed.
void ContentList::replace_in(Entry& entry, const RangeSet& ranges, const Ref<Event>& written) {
  auto common = entry.ranges.common(ranges);
  if (common.empty() || entry.is_last(written)) {
    return;
  }
  EventList next{written};
  auto remaining = entry.ranges;
  remaining.remove(common);
  if (!remaining.empty()) {
    Seat other;
    auto& rest = other.node_.front();
    rest.filled = entry.filled;
    rest.written = entry.written;
    rest.number = ++last_number_;
    EntryList split;
    extract(entry, split);
    entry.ranges = std::move(common);
    rest.ranges = std::move(remaining);
    add(split, entry);
    add(other.node_, rest);
  }
  entry.written.splice(entry.written.end(), next);
}

// Drops more entries than one call adds, so that they do not accumulate. Entries that cannot be
// dropped move to the end, and are inspected again after all others.
void ContentList::drop_some(RemovedEntries& removed) noexcept {
  int retained = 0;
  for (int scanned = 0; scanned < k_max_scanned && retained < k_max_retained && !entries_.empty();
       ++scanned) {
    auto& first = entries_.front();
    first.drop_failed(removed.writes);
    if (first.is_finished()) {
      extract(first, removed.entries);
    } else {
      entries_.splice(entries_.end(), entries_, first.self);
      ++retained;
    }
  }
}

// Finished entries near the range are dropped at once, since calls on an empty list cost only one
// load. Once a caller has waited for the copies to the range, no entry of these copies is left.
void ContentList::drop_finished(const ByteRange& range, RemovedEntries& removed) noexcept {
  EntryList finished;
  index_.visit_near(range, [&](Entry& each) {
    lock_.assert_held();
    each.drop_failed(removed.writes);
    if (each.is_finished()) {
      finished.splice(finished.end(), entries_, each.self);
    }
  });
  for (auto& each : finished) {
    each.index_seat = index_.extract(each.ranges.span(), each.number);
  }
  removed.entries.splice(removed.entries.end(), finished);
}

void ContentList::record_fill(Seat seat, RangeSet ranges, const Ref<Event>& filled) noexcept {
  ISTHMUS_EXPECTS(!ranges.empty());
  RemovedEntries removed;
  const LockGuard hold{lock_};
  drop_some(removed);
  remove(ranges, removed);
  auto& added = seat.node_.front();
  added.ranges = std::move(ranges);
  added.filled = filled;
  added.number = ++last_number_;
  add(seat.node_, added);
  any_.store(true, std::memory_order_release);
}

void ContentList::forget(const RangeSet& ranges) noexcept {
  if (!any() || ranges.empty()) {
    return;
  }
  RemovedEntries removed;
  const LockGuard hold{lock_};
  drop_some(removed);
  remove(ranges, removed);
  any_.store(!entries_.empty(), std::memory_order_release);
}

void ContentList::replace(const RangeSet& ranges, const Ref<Event>& written) noexcept try {
  if (!any() || ranges.empty()) {
    return;
  }
  RemovedEntries removed;
  std::vector<Entry*> found;
  const LockGuard hold{lock_};
  drop_some(removed);
  drop_finished(ranges.span(), removed);
  any_.store(!entries_.empty(), std::memory_order_release);
  index_.visit_near(ranges.span(), [&](Entry& each) { found.push_back(&each); });
  for (auto* each : found) {
    replace_in(*each, ranges, written);
  }
} catch (const std::bad_alloc&) {
  // Each entry that was changed is consistent, and the others are unchanged.
}

void ContentList::collect(const ByteRange& range, std::vector<Ref<Event>>& after) {
  if (!any()) {
    return;
  }
  RemovedEntries removed;
  const LockGuard hold{lock_};
  drop_some(removed);
  drop_finished(range, removed);
  any_.store(!entries_.empty(), std::memory_order_release);
  index_.visit_near(range, [&](Entry& each) {
    if (each.is_dependency() && each.ranges.overlaps(range)) {
      after.push_back(each.filled);
    }
  });
}

}  // namespace isthmus
