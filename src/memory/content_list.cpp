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

bool has_failed(const event& of) noexcept { return of.settled() && !of.succeeded(); }

}  // namespace

content_list::seat::seat() : one_(1) {
  auto& made = one_.front();
  made.self = one_.begin();
  made.place = index::make({}, 0, made);
}

content_list::seat::~seat() = default;

void content_list::entry::drop_failed(event_list& gone) noexcept {
  while (!written.empty() && has_failed(*written.front())) {
    gone.splice(gone.end(), written, written.begin());
  }
}

// Only the first write is inspected. Later ones usually complete later, so they wait for it.
bool content_list::entry::is_over() const noexcept {
  return filled->succeeded() || (!written.empty() && written.front()->succeeded());
}

bool content_list::entry::decides() const noexcept {
  return std::ranges::all_of(written, [](const auto& each) { return has_failed(*each); });
}

bool content_list::entry::loses_all(const range_set& removed) noexcept try {
  ranges.remove(removed);
  return ranges.empty();
} catch (const std::bad_alloc&) {
  return false;
}

void content_list::add(entry_list& from, entry& added) noexcept {
  index_.add(std::move(added.place), added.ranges.span(), added.number);
  entries_.splice(entries_.end(), from, added.self);
}

void content_list::extract(entry& gone, entry_list& to) noexcept {
  gone.place = index_.extract(gone.ranges.span(), gone.number);
  to.splice(to.end(), entries_, gone.self);
}

// The entries found are out of the index while their ranges change.
void content_list::remove(const range_set& ranges, leavers& gone) noexcept {
  entry_list found;
  index_.visit_near(ranges.span(),
                    [&](entry& each) { found.splice(found.end(), entries_, each.self); });
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
void content_list::replace_in(entry& of, const range_set& ranges, const ref<event>& written) {
  auto common = of.ranges.common(ranges);
  if (common.empty() || of.is_last(written)) {
    return;
  }
  event_list next{written};
  auto rest = of.ranges;
  rest.remove(common);
  if (!rest.empty()) {
    seat other;
    auto& kept = other.one_.front();
    kept.filled = of.filled;
    kept.written = of.written;
    kept.number = ++made_;
    entry_list split;
    extract(of, split);
    of.ranges = std::move(common);
    kept.ranges = std::move(rest);
    add(split, of);
    add(other.one_, kept);
  }
  of.written.splice(of.written.end(), next);
}

// Drops more entries than a call adds, so that they do not accumulate. Entries that stay move to
// the end and are inspected again after all others.
void content_list::drop_some(leavers& gone) noexcept {
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
void content_list::drop_over(const byte_range& range, leavers& gone) noexcept {
  entry_list over;
  index_.visit_near(range, [&](entry& each) {
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

void content_list::await(seat made, range_set ranges, const ref<event>& filled) noexcept {
  leavers gone;
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

void content_list::forget(const range_set& ranges) noexcept {
  if (!any() || ranges.empty()) {
    return;
  }
  leavers gone;
  const std::lock_guard hold{lock_};
  drop_some(gone);
  remove(ranges, gone);
  any_.store(!entries_.empty(), std::memory_order_release);
}

void content_list::replace(const range_set& ranges, const ref<event>& written) noexcept try {
  if (!any() || ranges.empty()) {
    return;
  }
  leavers gone;
  std::vector<entry*> found;
  const std::lock_guard hold{lock_};
  drop_some(gone);
  drop_over(ranges.span(), gone);
  any_.store(!entries_.empty(), std::memory_order_release);
  index_.visit_near(ranges.span(), [&](entry& each) { found.push_back(&each); });
  for (auto* each : found) {
    replace_in(*each, ranges, written);
  }
} catch (const std::bad_alloc&) {
  // Each entry that was changed is consistent, and the others count as before.
}

void content_list::collect(const byte_range& range, std::vector<ref<event>>& after) {
  if (!any()) {
    return;
  }
  leavers gone;
  const std::lock_guard hold{lock_};
  drop_some(gone);
  drop_over(range, gone);
  any_.store(!entries_.empty(), std::memory_order_release);
  index_.visit_near(range, [&](entry& each) {
    if (each.decides() && each.ranges.overlaps(range)) {
      after.push_back(each.filled);
    }
  });
}

}  // namespace isthmus
