// SPDX-License-Identifier: Apache-2.0
// What is pending on a queue: queries and waits.

#include <algorithm>
#include <mutex>

#include "backend/queue.hpp"
#include "os/process.hpp"

namespace isthmus {

result<void> queue::unfinished(std::vector<ref<event>>& out) {
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

void queue::add_unfinished_of_ours(std::vector<ref<event>>& out) {
  const std::lock_guard hold{tails_lock_};
  for (const auto& submitted : tails_) {
    if (!submitted.last->settled()) {
      out.push_back(submitted.last);
    }
  }
}

bool queue::ends_in_one(ref<event>& last) noexcept {
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

bool queue::idle() {
  std::vector<ref<event>> last;
  if (lent() || !unfinished(last)) {
    return false;
  }
  // Queried outside the lock: an event that completes may run anything.
  return std::none_of(last.begin(), last.end(),
                      [](const ref<event>& each) { return each->pending(); });
}

bool queue::quiet() noexcept {
  if (lent()) {
    return false;
  }
  const std::lock_guard hold{tails_lock_};
  return std::all_of(tails_.begin(), tails_.end(),
                     [](const tail& submitted) { return submitted.last->settled(); });
}

result<void> queue::wait(const os::deadline& until) {
  if (os::is_forked_child()) {
    return refuse();
  }
  std::vector<ref<event>> waited;
  ISTHMUS_TRY(unfinished(waited));
  return let_end(waited, until);
}

result<ref<event>> queue::pending() {
  if (os::is_forked_child()) {
    return refuse();
  }
  std::vector<ref<event>> waited;
  ISTHMUS_TRY(unfinished(waited));
  return end_of_all(waited);
}

}  // namespace isthmus
