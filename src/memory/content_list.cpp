// SPDX-License-Identifier: Apache-2.0
#include "memory/content_list.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

namespace isthmus {
namespace {

// Limits of the cleanup in one call, which keep the lock short: it drops at most so many entries of
// copies that succeeded, and stops after so many others.
constexpr int k_most_dropped = 256;
constexpr int k_most_kept = 4;

bool has_failed(const Event& event) noexcept { return event.settled() && !event.succeeded(); }

}  // namespace

ContentList::Seat::Seat() : one_(1) {
  auto& made = one_.front();
  made.self = one_.begin();
  made.place = Index::make({}, 0, made);
}

ContentList::Seat::~Seat() = default;

void ContentList::Entry::drop_failed(EventList& gone) noexcept {
  while (!written.empty() && has_failed(*written.front())) {
    gone.splice(gone.end(), written, written.begin());
  }
}

// Only the first write is inspected. Later ones usually complete later, so they wait for it.
bool ContentList::Entry::is_over() const noexcept {
  return filled->succeeded() || (!written.empty() && written.front()->succeeded());
}

bool ContentList::Entry::decides() const noexcept {
  return std::ranges::all_of(written, [](const auto& each) { return has_failed(*each); });
}

bool ContentList::Entry::loses_all(const RangeSet& removed) noexcept try {
  ranges.remove(removed);
  return ranges.empty();
} catch (const std::bad_alloc&) {
  return false;
}

void ContentList::add(EntryList& source, Entry& added) noexcept {
  index_.add(std::move(added.place), added.ranges.span(), added.number);
  entries_.splice(entries_.end(), source, added.self);
}

void ContentList::extract(Entry& gone, EntryList& target) noexcept {
  gone.place = index_.extract(gone.ranges.span(), gone.number);
  target.splice(target.end(), entries_, gone.self);
}

// The entries found are out of the index while their ranges change.
void ContentList::remove(const RangeSet& ranges, Leavers& gone) noexcept {
  EntryList found;
  index_.visit_near(ranges.span(),
                    [&](Entry& each) { found.splice(found.end(), entries_, each.self); });
  while (!found.empty()) {
    auto& each = found.front();
    each.drop_failed(gone.writes);
    each.place = index_.extract(each.ranges.span(), each.number);
    if (each.is_over() || each.loses_all(ranges)) {
      gone.entries.splice(gone.entries.end(), found, each.self);
    } else {
      add(found, each);
    }
  }
}

// Either takes effect as a whole or throws std::bad_alloc.
void ContentList::replace_in(Entry& entry, const RangeSet& ranges, const Ref<Event>& written) {
  auto common = entry.ranges.common(ranges);
  if (common.empty() || entry.is_last(written)) {
    return;
  }
  EventList next{written};
  auto rest = entry.ranges;
  rest.remove(common);
  if (!rest.empty()) {
    Seat other;
    auto& kept = other.one_.front();
    kept.filled = entry.filled;
    kept.written = entry.written;
    kept.number = ++made_;
    EntryList split;
    extract(entry, split);
    entry.ranges = std::move(common);
    kept.ranges = std::move(rest);
    add(split, entry);
    add(other.one_, kept);
  }
  entry.written.splice(entry.written.end(), next);
}

// Drops more entries than a call adds, so that they do not accumulate. Entries that stay move to
// the end and are inspected again after all others.
void ContentList::drop_some(Leavers& gone) noexcept {
  int kept = 0;
  for (int looks = 0; looks < k_most_dropped && kept < k_most_kept && !entries_.empty(); ++looks) {
    auto& first = entries_.front();
    first.drop_failed(gone.writes);
    if (first.is_over()) {
      extract(first, gone.entries);
    } else {
      entries_.splice(entries_.end(), entries_, first.self);
      ++kept;
    }
  }
}

// Completed entries are dropped at once because an empty list costs its users only one load. After
// a caller has waited for these bytes, no entry of the copies that filled them is left.
void ContentList::drop_over(const ByteRange& range, Leavers& gone) noexcept {
  EntryList over;
  index_.visit_near(range, [&](Entry& each) {
    each.drop_failed(gone.writes);
    if (each.is_over()) {
      over.splice(over.end(), entries_, each.self);
    }
  });
  for (auto& each : over) {
    each.place = index_.extract(each.ranges.span(), each.number);
  }
  gone.entries.splice(gone.entries.end(), over);
}

void ContentList::await(Seat made, RangeSet ranges, const Ref<Event>& filled) noexcept {
  Leavers gone;
  const std::lock_guard hold{lock_};
  drop_some(gone);
  remove(ranges, gone);
  auto& added = made.one_.front();
  added.ranges = std::move(ranges);
  added.filled = filled;
  added.number = ++made_;
  add(made.one_, added);
  any_.store(true, std::memory_order_release);
}

void ContentList::forget(const RangeSet& ranges) noexcept {
  if (!any() || ranges.empty()) {
    return;
  }
  Leavers gone;
  const std::lock_guard hold{lock_};
  drop_some(gone);
  remove(ranges, gone);
  any_.store(!entries_.empty(), std::memory_order_release);
}

void ContentList::replace(const RangeSet& ranges, const Ref<Event>& written) noexcept try {
  if (!any() || ranges.empty()) {
    return;
  }
  Leavers gone;
  std::vector<Entry*> found;
  const std::lock_guard hold{lock_};
  drop_some(gone);
  drop_over(ranges.span(), gone);
  any_.store(!entries_.empty(), std::memory_order_release);
  index_.visit_near(ranges.span(), [&](Entry& each) { found.push_back(&each); });
  for (auto* each : found) {
    replace_in(*each, ranges, written);
  }
} catch (const std::bad_alloc&) {
  // Each entry that was changed is consistent, and the others count as before.
}

void ContentList::collect(const ByteRange& range, std::vector<Ref<Event>>& after) {
  if (!any()) {
    return;
  }
  Leavers gone;
  const std::lock_guard hold{lock_};
  drop_some(gone);
  drop_over(range, gone);
  any_.store(!entries_.empty(), std::memory_order_release);
  index_.visit_near(range, [&](Entry& each) {
    if (each.decides() && each.ranges.overlaps(range)) {
      after.push_back(each.filled);
    }
  });
}

}  // namespace isthmus
