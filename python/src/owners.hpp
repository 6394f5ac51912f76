#pragma once
// References held by work in flight, dropped without ever taking the interpreter's lock.
//
// The library releases an owner on any thread. The release only pushes a node on a lock-free list
// and asks the interpreter to call `drain` later on; entries that are called often drain too. Once
// the interpreter ends, nodes are left where they are.

#include "common.hpp"

#include <atomic>

namespace isthmus::python {

// Something to be undone with the lock held. The node is made beforehand: a release allocates
// nothing.
struct deferred {
  virtual ~deferred() = default;
  deferred* next = nullptr;
};

// Puts it on the list; any thread, with or without the lock.
void defer(deferred* what) noexcept;
// Owners of the library's for it. `defer_owner` takes the node over.
[[nodiscard]] isthmus_owner_t defer_owner(deferred* what) noexcept;
// Keeps `object` alive; nothing for None and nullptr.
[[nodiscard]] isthmus_owner_t keep_alive(nb::handle object);

namespace detail {
extern std::atomic<deferred*> deferred_head;
void drain() noexcept;
}  // namespace detail

// Drops what is due. Needs the lock. May run destructors of any object.
inline void drain_deferred() noexcept {
  if (detail::deferred_head.load(std::memory_order_relaxed) != nullptr) [[unlikely]] {
    detail::drain();
  }
}

// No pending call is asked for from here on.
void stop_deferring() noexcept;

}  // namespace isthmus::python
