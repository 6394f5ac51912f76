// SPDX-License-Identifier: Apache-2.0
#include "recorder/observers.hpp"

#include <algorithm>
#include <array>

#include "core/expects.hpp"
#include "core/lock_guard.hpp"
#include "core/long_path.hpp"
#include "core/mutex.hpp"
#include "core/thread_safety.hpp"
#include "os/process.hpp"
#include "recorder/emission.hpp"

namespace isthmus {

constinit std::atomic<MemoryEventKinds> observed_kinds{0};

namespace {

// `observer` is written only while `kinds` is 0 and no emission that saw other kinds is in
// progress; an emission reads it only after it has seen kinds.
struct Subscription {
  std::atomic<MemoryEventKinds> kinds{0};
  MemoryObserver* observer = nullptr;  // null: not in use. Written under the lock.
};
constinit std::array<Subscription, k_max_observers> subscriptions{};
constinit Mutex subscriptions_lock;

Subscription* find_subscription(const MemoryObserver* observer) noexcept
    ISTHMUS_REQUIRES(subscriptions_lock) {
  const auto found = std::ranges::find(subscriptions, observer, &Subscription::observer);
  return found != subscriptions.end() ? found : nullptr;
}

void update_observed_kinds() noexcept ISTHMUS_REQUIRES(subscriptions_lock) {
  MemoryEventKinds all = 0;
  for (const auto& each : subscriptions) {
    all |= each.kinds.load(std::memory_order_relaxed);
  }
  observed_kinds.store(all, std::memory_order_relaxed);
  set_long_path(LongPathReason::observed,
                (all & kinds_of(MemoryEventKind::allocate, MemoryEventKind::free)) != 0);
}

}  // namespace

// In a forked child, a thread of the parent may have held the lock, and no event is emitted.
bool add_observer(MemoryObserver& observer, MemoryEventKinds kinds) noexcept {
  ISTHMUS_EXPECTS(kinds != 0, kinds);
  if (os::is_forked_child()) {
    return false;
  }
  const LockGuard hold{subscriptions_lock};
  ISTHMUS_EXPECTS(find_subscription(&observer) == nullptr);
  prepare_emissions();
  auto* const unused = find_subscription(nullptr);
  if (unused == nullptr) {
    return false;
  }
  unused->observer = &observer;
  unused->kinds.store(kinds, std::memory_order_seq_cst);
  update_observed_kinds();
  return true;
}

// The lock is released during the wait, so that an observer can be added meanwhile, and the entry
// is not reused until the wait is over.
void remove_observer(const MemoryObserver& observer) noexcept {
  if (os::is_forked_child()) {
    return;
  }
  Subscription* removed = nullptr;
  {
    const LockGuard hold{subscriptions_lock};
    removed = find_subscription(&observer);
    ISTHMUS_EXPECTS(removed != nullptr);
    removed->kinds.store(0, std::memory_order_seq_cst);
    update_observed_kinds();
  }
  wait_for_emissions();
  const LockGuard hold{subscriptions_lock};
  removed->observer = nullptr;
}

void emit(const MemoryEvent& event) noexcept {
  const Emission emission;
  if (!emission) {
    return;
  }
  const auto bit = bit_of(event.kind);
  for (const auto& each : subscriptions) {
    if ((each.kinds.load(std::memory_order_seq_cst) & bit) != 0) {
      each.observer->on_memory_event(event);
    }
  }
}

}  // namespace isthmus
