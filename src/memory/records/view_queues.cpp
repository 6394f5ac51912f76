// SPDX-License-Identifier: Apache-2.0
#include "memory/records/view_queues.hpp"

#include <algorithm>

#include "core/expects.hpp"
#include "core/lock_guard.hpp"

namespace isthmus {

std::vector<ViewQueues::Entry>::iterator ViewQueues::find(const Queue& queue) noexcept {
  return std::find_if(entries_.begin(), entries_.end(),
                      [&](const Entry& each) { return each.queue.get() == &queue; });
}

void ViewQueues::begin(Queue& queue) {
  const LockGuard hold{lock_};
  if (const auto entry = find(queue); entry != entries_.end()) {
    ++entry->views;
    return;
  }
  entries_.push_back({Ref<Queue>{&queue}, 1});
  any_.store(true, std::memory_order_release);
}

void ViewQueues::end(Queue& queue) noexcept {
  Ref<Queue> dropped;  // released after the lock
  const LockGuard hold{lock_};
  const auto entry = find(queue);
  ISTHMUS_EXPECTS(entry != entries_.end());  // `begin` was called for the view
  if (--entry->views == 0) {
    std::swap(*entry, entries_.back());
    dropped = std::move(entries_.back().queue);
    entries_.pop_back();
    any_.store(!entries_.empty(), std::memory_order_release);
  }
}

bool ViewQueues::find_exported() noexcept {
  const LockGuard hold{lock_};
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const Entry& each) { return each.queue->is_exported(); });
}

bool ViewQueues::find_queried_on_demand() noexcept {
  const LockGuard hold{lock_};
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const Entry& each) { return each.queue->traits().is_queried_on_demand; });
}

void ViewQueues::collect_exported(std::vector<Ref<Queue>>& out) {
  if (!any_.load(std::memory_order_acquire)) {
    return;
  }
  const LockGuard hold{lock_};
  for (const auto& each : entries_) {
    if (each.queue->is_exported()) {
      out.push_back(each.queue);
    }
  }
}

}  // namespace isthmus
