// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the library reports to observers (observers.hpp): one plain structure for all kinds of
// events.
//
// An event is emitted by the thread that performs the operation, and only if the operation
// succeeded; `oom_stage` is the exception. The emitting thread holds no lock of the unit that
// emits, except where a kind below names one. Its caller may hold a lock of its own object: that of
// a resource that sub-allocates, or of a unified buffer.
//
// The events of one address are in order: `free` is emitted before another thread can receive the
// block, and `allocate` before the caller receives it. Events of different addresses that no
// synchronization orders may arrive in any order.
//
// Addresses identify memory and are not to be accessed: memory may be inaccessible to the host, and
// released by the time that an observer reads the event.

#include <cstddef>
#include <cstdint>

namespace isthmus {

enum class MemoryEventKind : std::uint8_t {
  // A pool, or the provider, gives a block to its caller. Emitted after the block was taken from
  // the free memory. `nbytes`: the bytes that the block occupies; `requested`: those that were
  // requested; `tag`. For a pool also `queue` and `resource`. Whether the block has an allocation
  // record makes no difference.
  allocate,
  // A caller returned a block. Emitted before the pool or the driver can reuse it. `nbytes` as for
  // `allocate`. For a pool also `resource`, and `queue`, in whose order the block is freed; 0 if
  // nothing uses it. A deferred release is reported when the memory returns to the pool or to the
  // driver.
  free,
  // A pool takes memory for a request on `queue` that was freed in the order of another queue: a
  // block for a thread cache, or a page run for a large block or a slab. The work on that queue has
  // completed or, in the stage `device_wait`, `queue` waits for it. Precedes `allocate`; the block
  // may be kept for a later request. Memory is not reported if the pool found before the request
  // that the work was complete, and recorded it as free for all queues. `nbytes`, `resource`.
  reuse,
  // A pool obtains memory from the driver, or from its upstream resource (`grow`), and returns it
  // (`shrink`). A pool may return memory in other pieces than it obtained, of as many bytes in
  // total, and at addresses to which it moved the memory. `nbytes`, `resource`. Emitted, like the
  // next two, mostly while the thread holds the turn of the pool's driver calls
  // (memory/pool/growth_turns.hpp). A trim after a free and the pool's destructor have no turn, so
  // events of different addresses may be concurrent.
  grow,
  shrink,
  // Memory of a pool that can be remapped becomes accessible at an address, when a chunk is created
  // or moved, and is no longer accessible there. The `map` of a new chunk follows its `grow`; its
  // last `unmap` precedes `shrink`. While both mappings of a moved chunk exist, its bytes count
  // twice. `nbytes`, `resource`.
  map,
  unmap,
  // A copy, or a conversion of array elements, was submitted, or executed if the call blocks or the
  // host copies at once. One event for each call, however many commands it takes. `address`: the
  // destination, `source`, `nbytes` without gaps, `queue`: the queue in whose order it runs, 0 for
  // none.
  copy,
  // As `copy`, for a fill. A fill of an array may consist of a fill and of copies, each reported.
  fill,
  // A thread of the host has waited for an operation that was not complete, with success or not.
  // Emitted after the wait. `address`: the completion event; `duration_ns`.
  wait,
  // Memory of a buffer was made accessible to other code, or to another process (`Buffer::share`).
  // `nbytes`, `queue`: the buffer's.
  export_memory,
  // A pool is about to try an out-of-memory stage (`stage`, an `OomStage`) for a request of
  // `requested` bytes on `queue`; `nbytes`: the pages that it needs. Stages are reported in the
  // order of the attempts, before the events of each attempt. `resource`.
  oom_stage,
};
inline constexpr std::size_t k_memory_event_kinds = 12;

// Fields that a kind does not name are 0.
struct MemoryEvent {
  MemoryEventKind kind;
  std::uint8_t stage = 0;
  const void* address = nullptr;
  std::size_t nbytes = 0;
  std::size_t requested = 0;
  std::uint64_t queue = 0;         // `Queue::serial`
  const void* resource = nullptr;  // identifies the pool or provider; null: the driver's own
  const void* source = nullptr;
  const char* tag = nullptr;  // of the allocating thread (memory/base/tags.hpp); never freed
  std::uint64_t duration_ns = 0;
};

// A set of kinds: one bit for each.
using MemoryEventKinds = std::uint32_t;

[[nodiscard]] constexpr MemoryEventKinds bit_of(MemoryEventKind kind) noexcept {
  return MemoryEventKinds{1} << static_cast<unsigned>(kind);
}
template <class... Kinds>
[[nodiscard]] constexpr MemoryEventKinds kinds_of(Kinds... kinds) noexcept {
  return (bit_of(kinds) | ...);
}
inline constexpr MemoryEventKinds k_all_memory_events =
    (MemoryEventKinds{1} << k_memory_event_kinds) - 1;

}  // namespace isthmus
