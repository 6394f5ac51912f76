#include "memory/content_list.hpp"

#include <algorithm>
#include <mutex>
#include <new>

#include "core/promised_room.hpp"

namespace isthmus {
namespace {

bool has_failed(const event& of) noexcept { return of.settled() && !of.succeeded(); }

}  // namespace

void content_list::reserve() { static_cast<void>(promise_room(entries_, lock_, promised_, 0)); }

void content_list::give_up() noexcept {
  const std::lock_guard hold{lock_};
  --promised_;
}

void content_list::entry::drop_failed(event_list& gone) noexcept {
  while (!written.empty() && has_failed(*written.front())) {
    gone.splice(gone.end(), written, written.begin());
  }
}

// Later ones end later as a rule: what follows one in flight is left until that has ended.
bool content_list::entry::is_over() const noexcept {
  return filled->succeeded() || (!written.empty() && written.front()->succeeded());
}

bool content_list::entry::decides() const noexcept {
  return std::ranges::all_of(written, [](const auto& each) { return has_failed(*each); });
}

// Without memory an entry stays longer than it should: its readers fail that need not.
void content_list::remove(const range_set& ranges, leavers& gone) noexcept try {
  gone.entries.reserve(entries_.size());
  std::size_t kept = 0;
  for (auto& each : entries_) {
    each.drop_failed(gone.writes);
    if (each.is_over()) {
      each.ranges.clear();
    } else if (!ranges.empty()) {
      each.ranges.remove(ranges);
    }
    if (each.ranges.empty()) {
      gone.entries.push_back(std::move(each));
    } else if (&entries_[kept++] != &each) {
      entries_[kept - 1] = std::move(each);
    }
  }
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(kept), entries_.end());
} catch (const std::bad_alloc&) {
  // Moved from are only entries that have left.
  std::erase_if(entries_, [](const entry& each) { return !each.filled; });
}

void content_list::await(range_set ranges, const ref<event>& filled) noexcept {
  leavers gone;
  const std::lock_guard hold{lock_};
  remove(ranges, gone);
  entries_.push_back({std::move(ranges), filled});
  --promised_;
  any_.store(true, std::memory_order_release);
}

void content_list::forget(const range_set& ranges) noexcept {
  if (!any()) {
    return;
  }
  leavers gone;
  const std::lock_guard hold{lock_};
  remove(ranges, gone);
  any_.store(!entries_.empty(), std::memory_order_release);
}

void content_list::replace(const range_set& ranges, const ref<event>& written) noexcept try {
  if (!any()) {
    return;
  }
  leavers gone;
  const std::lock_guard hold{lock_};
  remove({}, gone);
  const auto count = entries_.size();
  entries_.reserve(2 * count + promised_);
  for (std::size_t index = 0; index < count; ++index) {
    auto& each = entries_[index];
    auto common = each.ranges.common(ranges);
    if (common.empty() || each.is_last(written)) {
      continue;
    }
    event_list next{written};
    auto rest = each.ranges;
    rest.remove(common);
    if (!rest.empty()) {
      entries_.push_back({std::move(rest), each.filled, each.written});
    }
    each.ranges = std::move(common);
    each.written.splice(each.written.end(), next);
  }
} catch (const std::bad_alloc&) {
  // What was changed is whole, and the rest decides as before.
}

void content_list::collect(const byte_range& range, std::vector<ref<event>>& after) {
  if (!any()) {
    return;
  }
  leavers gone;
  const std::lock_guard hold{lock_};
  remove({}, gone);
  any_.store(!entries_.empty(), std::memory_order_release);
  for (const auto& each : entries_) {
    if (each.decides() && each.ranges.overlaps(range)) {
      after.push_back(each.filled);
    }
  }
}

}  // namespace isthmus
