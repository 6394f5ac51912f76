// SPDX-License-Identifier: Apache-2.0
#include "memory/view_queues.hpp"

#include <algorithm>
#include <mutex>

namespace isthmus {

std::vector<view_queues::entry>::iterator view_queues::find(const queue& on) noexcept {
  return std::find_if(entries_.begin(), entries_.end(),
                      [&](const entry& each) { return each.on.get() == &on; });
}

void view_queues::begin(queue& on) {
  const std::lock_guard hold{lock_};
  if (const auto known = find(on); known != entries_.end()) {
    ++known->views;
    return;
  }
  entries_.push_back({ref<queue>{&on}, 1});
  some_.store(true, std::memory_order_release);
}

void view_queues::end(queue& on) noexcept {
  ref<queue> dropped;  // released after the lock
  const std::lock_guard hold{lock_};
  const auto known = find(on);
  if (--known->views == 0) {
    std::swap(*known, entries_.back());
    dropped = std::move(entries_.back().on);
    entries_.pop_back();
    some_.store(!entries_.empty(), std::memory_order_release);
  }
}

bool view_queues::find_lent() noexcept {
  const std::lock_guard hold{lock_};
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const entry& each) { return each.on->lent(); });
}

bool view_queues::find_asked_on_demand() noexcept {
  const std::lock_guard hold{lock_};
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const entry& each) { return each.on->is_asked_on_demand(); });
}

void view_queues::collect_lent(std::vector<ref<queue>>& out) {
  if (!some_.load(std::memory_order_acquire)) {
    return;
  }
  const std::lock_guard hold{lock_};
  for (const auto& each : entries_) {
    if (each.on->lent()) {
      out.push_back(each.on);
    }
  }
}

}  // namespace isthmus
