// SPDX-License-Identifier: Apache-2.0
#include "backend/function_waits.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "core/expects.hpp"
#include "core/lock_guard.hpp"
#include "core/mutex.hpp"
#include "core/never_destroyed.hpp"
#include "core/thread_safety.hpp"

namespace isthmus {

std::atomic<std::size_t> pending_functions{0};

namespace {

using Positions = std::vector<QueuePosition>;

// From `number` on, the operations of a queue follow the function at `followed`.
struct Record {
  std::uint64_t number = 0;
  QueuePosition followed;
};

// A queue with pending functions, or whose operations follow functions of other queues.
struct QueueRecords {
  std::set<std::uint64_t> functions;  // numbers of those that are pending
  std::vector<Record> records;        // sorted by `Record::number`
  std::size_t prune_size = 16;        // of `records`
  PendingFunction* running = nullptr;
};

struct Functions {
  Mutex lock;
  // By the serials of the queues. Empty while no function is pending.
  std::map<std::uint64_t, QueueRecords> queues ISTHMUS_GUARDED_BY(lock);
};

// Never destroyed, since threads of the library may outlive static objects.
Functions& all_functions() {
  static NeverDestroyed<Functions> instance;
  return *instance;
}

// Keeps the greater number of each queue.
void merge(Positions& all, QueuePosition added) {
  const auto same = std::ranges::find(all, added.queue, &QueuePosition::queue);
  if (same == all.end()) {
    all.push_back(added);
  } else {
    same->number = std::max(same->number, added.number);
  }
}

// Adds the last function of each queue that an operation at `position` follows. A function follows
// itself: what waits for its end waits for it.
void add_followed(Functions& all, QueuePosition position, Positions& out)
    ISTHMUS_REQUIRES(all.lock) {
  const auto found = all.queues.find(position.queue);
  if (found == all.queues.end()) {
    return;
  }
  const auto& [functions, records, _, running] = found->second;
  if (const auto next = functions.upper_bound(position.number); next != functions.begin()) {
    merge(out, {position.queue, *std::prev(next)});
  }
  for (const auto& each : records) {
    if (each.number > position.number) {
      break;
    }
    merge(out, each.followed);
  }
}

bool is_pending(const Functions& all, QueuePosition followed) ISTHMUS_REQUIRES(all.lock) {
  const auto found = all.queues.find(followed.queue);
  return found != all.queues.end() && !found->second.functions.empty() &&
         *found->second.functions.begin() <= followed.number;
}

// Removes records of functions that have returned, at a constant amortized cost per record.
void prune(const Functions& all, QueueRecords& queue) ISTHMUS_REQUIRES(all.lock) {
  if (queue.records.size() < queue.prune_size) {
    return;
  }
  std::erase_if(queue.records, [&](const Record& each) {
    all.lock.assert_held();
    return !is_pending(all, each.followed);
  });
  queue.prune_size = std::max<std::size_t>(16, 2 * queue.records.size());
}

void add_record(Functions& all, QueuePosition position, QueuePosition followed)
    ISTHMUS_REQUIRES(all.lock) {
  auto& queue = all.queues[position.queue];
  const bool is_known = std::ranges::any_of(queue.records, [&](const Record& each) {
    return each.followed.queue == followed.queue && each.followed.number >= followed.number &&
           each.number <= position.number;
  });
  if (is_known) {
    return;
  }
  prune(all, queue);
  const auto next = std::ranges::upper_bound(queue.records, position.number, {}, &Record::number);
  queue.records.insert(next, {position.number, followed});
}

// The function that runs on the queue of `followed`, unless it was submitted later.
const PendingFunction* running_before(const Functions& all, QueuePosition followed)
    ISTHMUS_REQUIRES(all.lock) {
  const auto found = all.queues.find(followed.queue);
  auto* const running = found != all.queues.end() ? found->second.running : nullptr;
  return running != nullptr && running->position().number <= followed.number ? running : nullptr;
}

bool contains(const Positions& awaited, QueuePosition function) {
  return std::ranges::any_of(awaited, [&](const QueuePosition& each) {
    return each.queue == function.queue && each.number >= function.number;
  });
}

}  // namespace

void PendingFunction::begin(QueuePosition position) {
  auto& all = all_functions();
  const LockGuard hold{all.lock};
  all.queues[position.queue].functions.insert(position.number);
  position_ = position;
  pending_functions.fetch_add(1, std::memory_order_relaxed);
}

PendingFunction::~PendingFunction() {
  if (position_.queue == 0) {
    return;
  }
  std::map<std::uint64_t, QueueRecords> released;  // outside of the lock
  auto& all = all_functions();
  const LockGuard hold{all.lock};
  all.queues.find(position_.queue)->second.functions.erase(position_.number);
  if (pending_functions.fetch_sub(1, std::memory_order_relaxed) == 1) {
    all.queues.swap(released);
  }
}

RunningFunction::RunningFunction(PendingFunction& function) noexcept {
  ISTHMUS_EXPECTS(!is_in_function());
  running_function = &function;
  auto& all = all_functions();
  const LockGuard hold{all.lock};
  if (const auto found = all.queues.find(function.position().queue); found != all.queues.end()) {
    found->second.running = &function;
  }
}

RunningFunction::~RunningFunction() {
  auto& all = all_functions();
  const LockGuard hold{all.lock};
  const auto queue = std::exchange(running_function, nullptr)->position().queue;
  if (const auto found = all.queues.find(queue); found != all.queues.end()) {
    found->second.running = nullptr;
  }
}

void record_dependencies(QueuePosition position, QueuePositions dependencies) {
  Positions followed;
  auto& all = all_functions();
  const LockGuard hold{all.lock};
  for (const auto& each : dependencies) {
    add_followed(all, each, followed);
  }
  for (const auto& each : followed) {
    if (each.queue != position.queue) {
      add_record(all, position, each);
    }
  }
}

void add_followed_functions(QueuePositions positions, std::vector<QueuePosition>& out) {
  auto& all = all_functions();
  const LockGuard hold{all.lock};
  for (const auto& each : positions) {
    add_followed(all, each, out);
  }
}

// Follows the waits of other running functions, until one of them waits for this function. A queue
// runs one function at a time, and the others on it wait for that one.
Result<void> FunctionWait::begin(QueuePositions positions) {
  ISTHMUS_EXPECTS(is_in_function() && !has_begun_);
  auto& self = *running_function;
  Positions reached;
  auto& all = all_functions();
  const LockGuard hold{all.lock};
  for (const auto& each : positions) {
    add_followed(all, each, reached);
  }
  auto awaited = reached;
  for (std::size_t index = 0; index < reached.size(); ++index) {
    const auto* const running = running_before(all, reached[index]);
    for (const auto& each : running != nullptr ? running->awaited_ : Positions{}) {
      if (!contains(reached, each)) {
        reached.push_back(each);
      }
    }
  }
  if (contains(reached, self.position_)) {
    return fail(ISTHMUS_ERROR_DEADLOCK,
                "this wait would never end, because the operation starts only after the function "
                "that waits for it has returned: wait for it elsewhere, or use another queue");
  }
  outer_ = std::exchange(self.awaited_, std::move(awaited));
  has_begun_ = true;
  return {};
}

FunctionWait::~FunctionWait() {
  if (has_begun_) {
    auto& self = *running_function;
    const LockGuard hold{all_functions().lock};
    std::swap(self.awaited_, outer_);
  }
}

}  // namespace isthmus
