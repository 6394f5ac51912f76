// SPDX-License-Identifier: Apache-2.0
#pragma once
// The observation point: the one place through which the layers report memory events, to any number
// of observers up to `k_max_observers`. Thread-safe: observers are added and removed while other
// threads emit events.
//
// While no observer wants a kind, its emission costs one relaxed load and a predicted branch. The
// shortest paths of the C interface, an allocation and a free that the thread's cache of a pool
// serves, cost nothing more: they read one word for all reasons to leave them (core/long_path.hpp).
// While an observer wants a kind, its emission takes some 14 ns: a warm allocation with its free
// takes 38 ns instead of 10.6 with one observer that counts both.

#include <atomic>
#include <utility>

#include "recorder/memory_event.hpp"

namespace isthmus {

// Receives events on the threads that emit them, so calls are concurrent. It must return soon, and
// must not call the library or wait for a thread that does: the emitting thread may hold a lock
// (memory_event.hpp). If it causes events nevertheless, no observer receives them.
class MemoryObserver {
 public:
  virtual void on_memory_event(const MemoryEvent& event) noexcept = 0;

 protected:
  MemoryObserver() = default;
  MemoryObserver(const MemoryObserver&) = default;
  MemoryObserver& operator=(const MemoryObserver&) = default;
  ~MemoryObserver() = default;
};

inline constexpr std::size_t k_max_observers = 8;

// Begins to call the observer for these kinds: for every event whose emission begins after this
// returns. False if `k_max_observers` have been added, and in a forked child. The observer
// must outlive its removal.
[[nodiscard]] bool add_observer(MemoryObserver& observer, MemoryEventKinds kinds) noexcept;
// When this returns, the observer is not being called and will not be called again. The calling
// thread must not hold a lock that an observer needs.
void remove_observer(const MemoryObserver& observer) noexcept;

// The kinds that any observer wants; read by `is_observed`.
extern constinit std::atomic<MemoryEventKinds> observed_kinds;

[[nodiscard]] inline bool is_observed(MemoryEventKind kind) noexcept {
  return (observed_kinds.load(std::memory_order_relaxed) & bit_of(kind)) != 0;
}

// Calls the observers that want the event.
[[gnu::cold]] void emit(const MemoryEvent& event) noexcept;

// Emits `describe()`, an event of that kind. `describe` is called only if an observer wants it.
template <class Describe>
inline void observe(MemoryEventKind kind, Describe&& describe) noexcept {
  if (is_observed(kind)) [[unlikely]] {
    emit(std::forward<Describe>(describe)());
  }
}

}  // namespace isthmus
