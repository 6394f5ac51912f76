// SPDX-License-Identifier: Apache-2.0
// Queries and waits for the pending work of a queue.

#include <algorithm>
#include <mutex>

#include "backend/queue.hpp"
#include "os/process.hpp"

namespace isthmus {

Result<void> Queue::unfinished(std::vector<Ref<Event>>& out) {
  if (is_exported()) {
    auto fence_event = do_fence({});
    ISTHMUS_TRY(fence_event);
    out.push_back(*std::move(fence_event));
    if (!has_off_queue_.load(std::memory_order_acquire)) [[likely]] {
      return {};
    }
  }
  add_own_unfinished(out);
  return {};
}

void Queue::add_own_unfinished(std::vector<Ref<Event>>& out) {
  const std::lock_guard hold{tails_lock_};
  for (const auto& submitted : tails_) {
    if (!submitted.last->settled()) {
      out.push_back(submitted.last);
    }
  }
}

bool Queue::has_single_end(Ref<Event>& last) noexcept {
  if (is_exported()) {
    return false;
  }
  const std::lock_guard hold{tails_lock_};
  for (const auto& submitted : tails_) {
    if (submitted.last->settled()) {
      continue;
    }
    if (last) {
      last = {};
      return false;
    }
    last = submitted.last;
  }
  return true;
}

bool Queue::idle() {
  std::vector<Ref<Event>> last;
  if (is_exported() || !unfinished(last)) {
    return false;
  }
  // Queries the events outside the lock, since completion runs continuations, which may use this
  // queue.
  return std::none_of(last.begin(), last.end(),
                      [](const Ref<Event>& each) { return each->pending(); });
}

bool Queue::is_known_idle() noexcept {
  if (is_exported()) {
    return false;
  }
  const std::lock_guard hold{tails_lock_};
  return std::all_of(tails_.begin(), tails_.end(),
                     [](const Tail& submitted) { return submitted.last->settled(); });
}

Result<void> Queue::wait(const os::Deadline& until) {
  if (os::is_forked_child()) {
    return check_usable();
  }
  std::vector<Ref<Event>> unfinished_events;
  ISTHMUS_TRY(unfinished(unfinished_events));
  return wait_until_ended(unfinished_events, until);
}

Result<Ref<Event>> Queue::pending() {
  if (os::is_forked_child()) {
    return check_usable();
  }
  std::vector<Ref<Event>> unfinished_events;
  ISTHMUS_TRY(unfinished(unfinished_events));
  return end_of_all(unfinished_events);
}

}  // namespace isthmus
