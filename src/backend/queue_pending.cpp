// SPDX-License-Identifier: Apache-2.0
// What is pending on a queue: queries and waits.

#include <algorithm>
#include <mutex>

#include "backend/queue.hpp"
#include "os/process.hpp"

namespace isthmus {

Result<void> Queue::unfinished(std::vector<Ref<Event>>& out) {
  if (lent()) {
    auto reached = do_fence({});
    ISTHMUS_TRY(reached);
    out.push_back(*std::move(reached));
    if (!waits_elsewhere_.load(std::memory_order_acquire)) [[likely]] {
      return {};
    }
  }
  add_unfinished_of_ours(out);
  return {};
}

void Queue::add_unfinished_of_ours(std::vector<Ref<Event>>& out) {
  const std::lock_guard hold{tails_lock_};
  for (const auto& submitted : tails_) {
    if (!submitted.last->settled()) {
      out.push_back(submitted.last);
    }
  }
}

bool Queue::ends_in_one(Ref<Event>& last) noexcept {
  if (lent()) {
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
  if (lent() || !unfinished(last)) {
    return false;
  }
  // Queried outside the lock: an event that completes may run anything.
  return std::none_of(last.begin(), last.end(),
                      [](const Ref<Event>& each) { return each->pending(); });
}

bool Queue::quiet() noexcept {
  if (lent()) {
    return false;
  }
  const std::lock_guard hold{tails_lock_};
  return std::all_of(tails_.begin(), tails_.end(),
                     [](const Tail& submitted) { return submitted.last->settled(); });
}

Result<void> Queue::wait(const os::Deadline& until) {
  if (os::is_forked_child()) {
    return refuse();
  }
  std::vector<Ref<Event>> waited;
  ISTHMUS_TRY(unfinished(waited));
  return let_end(waited, until);
}

Result<Ref<Event>> Queue::pending() {
  if (os::is_forked_child()) {
    return refuse();
  }
  std::vector<Ref<Event>> waited;
  ISTHMUS_TRY(unfinished(waited));
  return end_of_all(waited);
}

}  // namespace isthmus
