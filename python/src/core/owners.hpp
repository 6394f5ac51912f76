// SPDX-License-Identifier: Apache-2.0
#pragma once
// References held by pending operations, which are dropped without taking the interpreter's lock.
//
// The library releases an owner on any thread. The release only pushes a node on a lock-free list
// and requests that the interpreter call `drain` later; entry points that are called often drain
// too. Once the interpreter ends, nodes are leaked.
//
// Only the head of the list is shared. A push publishes its node with a compare-exchange, and
// `drain` takes the whole list with one exchange, so that a node is never popped singly and ABA
// cannot occur.

#include "core/common.hpp"

#include <atomic>

namespace isthmus::python {

// An object whose destructor needs the lock. The node is allocated beforehand: a release allocates
// nothing.
struct Deferred {
  virtual ~Deferred() = default;
  Deferred* next = nullptr;
};

// Pushes it on the list. Any thread, with or without the lock.
void defer(Deferred* deferred) noexcept;
// Owners to pass to the library. `defer_owner` takes ownership of the node.
[[nodiscard]] isthmus_owner_t defer_owner(Deferred* deferred) noexcept;
// Keeps `object` alive; does nothing for None and nullptr.
[[nodiscard]] isthmus_owner_t keep_alive(nb::handle object);

namespace detail {
extern ISTHMUS_EXPORTED std::atomic<Deferred*> deferred_head;
ISTHMUS_EXPORTED void drain() noexcept;
}  // namespace detail

// Destroys the deferred objects. Needs the lock. May run destructors of any object.
inline void drain_deferred() noexcept {
  if (detail::deferred_head.load(std::memory_order_relaxed) != nullptr) [[unlikely]] {
    detail::drain();
  }
}

// Stops requesting pending calls from the interpreter.
void stop_deferring() noexcept;

}  // namespace isthmus::python
