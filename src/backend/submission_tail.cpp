// SPDX-License-Identifier: Apache-2.0
#include "backend/submission_tail.hpp"

#include <algorithm>
#include <utility>

#include "core/expects.hpp"
#include "core/lock_guard.hpp"
#include "core/promised_room.hpp"

namespace isthmus {

// `reserve_entry` takes the lock.
std::uint64_t SubmissionTail::reserve() {
  return reserve_entry(entries_, lock_, reserved_, next_number_);
}

void SubmissionTail::cancel() noexcept {
  const LockGuard hold{lock_};
  --reserved_;
}

// Adds the new entry first, so that a concurrent query never misses work. Releases references
// outside the lock, one at a time: there is a single entry unless threads submit concurrently.
void SubmissionTail::record(Ref<Event> submitted, std::uint64_t begin,
                            std::uint64_t off_queue_limit) noexcept {
  const auto precedes = [=](const Entry& earlier) {
    return earlier.number < (earlier.is_off_queue ? off_queue_limit : begin);
  };
  {
    const LockGuard hold{lock_};
    --reserved_;
    if (entries_.size() == 1 && off_queue_limit == 0 && precedes(entries_.front())) [[likely]] {
      entries_.front().number = next_number_++;
      std::swap(entries_.front().last, submitted);
      return;
    }
    entries_.push_back({next_number_++, std::move(submitted)});
  }
  for (;;) {
    Ref<Event> dropped;
    const LockGuard hold{lock_};
    const auto first = std::find_if(entries_.begin(), entries_.end(), precedes);
    if (first == entries_.end()) {
      if (off_queue_limit != 0) [[unlikely]] {
        has_off_queue_.store(std::ranges::any_of(entries_, &Entry::is_off_queue),
                             std::memory_order_release);
      }
      return;
    }
    dropped = std::move(first->last);
    entries_.erase(first);
  }
}

void SubmissionTail::insert_off_queue(const Ref<Event>& event) noexcept {
  const LockGuard hold{lock_};
  --reserved_;
  entries_.push_back({next_number_++, event, true});
  has_off_queue_.store(true, std::memory_order_release);
}

std::uint64_t SubmissionTail::add_off_queue(std::vector<Ref<Event>>& out) {
  const LockGuard hold{lock_};
  for (const auto& each : entries_) {
    if (each.is_off_queue) {
      out.push_back(each.last);
    }
  }
  return next_number_;
}

std::uint64_t SubmissionTail::next_number() noexcept {
  const LockGuard hold{lock_};
  return next_number_;
}

Ref<Event> SubmissionTail::unfinished_off_queue() noexcept {
  const LockGuard hold{lock_};
  const auto found = std::ranges::find_if(
      entries_, [](const Entry& each) { return each.is_off_queue && !each.last->settled(); });
  return found != entries_.end() ? found->last : Ref<Event>{};
}

void SubmissionTail::add_unfinished(std::vector<Ref<Event>>& out) {
  const LockGuard hold{lock_};
  for (const auto& each : entries_) {
    if (!each.last->settled()) {
      out.push_back(each.last);
    }
  }
}

bool SubmissionTail::has_single_end(Ref<Event>& last) noexcept {
  ISTHMUS_EXPECTS(!last);
  const LockGuard hold{lock_};
  for (const auto& each : entries_) {
    if (each.last->settled()) {
      continue;
    }
    if (last) {
      last = {};
      return false;
    }
    last = each.last;
  }
  return true;
}

bool SubmissionTail::is_known_idle() noexcept {
  const LockGuard hold{lock_};
  return std::all_of(entries_.begin(), entries_.end(),
                     [](const Entry& each) { return each.last->settled(); });
}

}  // namespace isthmus
