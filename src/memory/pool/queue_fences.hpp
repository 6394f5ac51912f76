// SPDX-License-Identifier: Apache-2.0
#pragma once
// Queue order in a pool: which requests may reuse memory that was freed while work may still use
// it.
//
// Each queue on which memory was freed has an entry (`QueueEntry`), and the memory has a ticket:
// the entry, and the number of a fence of the queue that completes after that work. On that queue
// the memory is reusable immediately, since the next use is ordered after that work. On other
// queues it is reusable once the fence has passed, which a single load shows. A free submits
// nothing: fences are submitted when a request finds too little reusable memory (`fence`).
//
// Protocol, for the counters of an entry (queue_entry_table.hpp): `next` reads `issued`, returns a
// ticket for the following number and raises `wanted` to it. `submit` raises `issued` before it
// calls the driver, so memory that is freed during or after that call gets a later number. When a
// fence has completed, `pass` raises `done` with release; `passed` loads it with acquire, so a
// thread that reuses the memory sees all that was written before.

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "backend/queue.hpp"
#include "core/spin_lock.hpp"
#include "core/thread_safety.hpp"
#include "memory/pool/queue_entry_table.hpp"

namespace isthmus {

class Ticket {
 public:
  // A ticket that has passed: nothing uses the memory.
  constexpr Ticket() noexcept = default;
  constexpr Ticket(unsigned index, std::uint64_t number) noexcept
      : bits_{std::uint64_t{index} << k_number_bits | number} {}

  // A ticket that never passes, for memory whose last use may still run and whose completion cannot
  // be determined.
  [[nodiscard]] static constexpr Ticket never() noexcept;

  [[nodiscard]] constexpr unsigned entry() const noexcept {
    return static_cast<unsigned>(bits_ >> k_number_bits);
  }
  [[nodiscard]] constexpr std::uint64_t number() const noexcept {
    return bits_ & ((std::uint64_t{1} << k_number_bits) - 1);
  }
  friend constexpr bool operator==(Ticket, Ticket) noexcept = default;

 private:
  static constexpr unsigned k_number_bits = 48;
  std::uint64_t bits_ = 0;
};

// Whether memory with this ticket was freed in the order of another queue than that of `entry`, and
// the pool had not replaced the ticket yet because it found that the work has completed.
[[nodiscard]] constexpr bool is_from_other_queue(Ticket freed, unsigned entry) noexcept {
  return freed != Ticket{} && freed.entry() != entry;
}

// Thread-safe. Reference-counted, since pending fences outlive their pool.
class QueueFences final : public RefCounted {
 public:
  using EntryIndex = QueueEntryTable::Index;
  static constexpr EntryIndex k_no_queue = QueueEntryTable::k_none;
  // For memory that waits for more than one queue: it then waits for all queues of the pool.
  static constexpr EntryIndex k_several = 1;
  // Passed in place of the request's queue by a caller that itself waits for the work on the
  // memory.
  static constexpr EntryIndex k_any_queue = QueueEntryTable::k_max;

  // The entry of `queue`. k_no_queue for null, for queues that are not `is_in_order` (whose memory
  // is reusable only after its fence has passed, even on the same queue), and if all entries are in
  // use.
  [[nodiscard]] EntryIndex find(Queue* queue) noexcept;
  // While a thread cache holds memory that was freed on the entry's queue, which has no ticket yet,
  // the entry is not assigned to another queue.
  void attach_thread_cache(EntryIndex index) noexcept {
    entries_[index].thread_cache_count.fetch_add(1, std::memory_order_relaxed);
  }
  void detach_thread_cache(EntryIndex index) noexcept {
    entries_[index].thread_cache_count.fetch_sub(1, std::memory_order_release);
  }

  // The number of fences that have passed so far. While it does not change, no ticket passes.
  // nullopt while a fence is passing. `pass` raises `passes_begun_` before `done` and
  // `passes_ended_` after it; this reads them in the opposite order, so equal values mean that no
  // pass was in progress.
  [[nodiscard]] std::optional<std::uint64_t> passes() const noexcept {
    const auto ended = passes_ended_.load(std::memory_order_acquire);
    const auto begun = passes_begun_.load(std::memory_order_acquire);
    return begun == ended ? std::optional{ended} : std::nullopt;
  }

  // A reference to the queue with that serial number; null if it has no entry, or if only pools
  // still reference it.
  [[nodiscard]] Ref<Queue> find(std::uint64_t serial) noexcept;

  // Whether the queue has an entry, after assigning one if necessary and possible. Also for
  // exported queues.
  [[nodiscard]] bool has_entry_for(Queue& queue) noexcept { return entry_of(queue) != k_no_queue; }

  // The ticket of memory that is freed now, after all work on the entry's queue.
  [[nodiscard]] Ticket next(EntryIndex index) noexcept;
  [[nodiscard]] bool passed(Ticket ticket) const noexcept {
    return ticket.number() <= entries_[ticket.entry()].done.load(std::memory_order_acquire);
  }
  // Whether a request on the queue of entry `index` may use memory with this ticket.
  [[nodiscard]] bool is_usable(Ticket ticket, EntryIndex index) const noexcept;
  // Whether one ticket can replace both without excluding a request that one of them allows.
  [[nodiscard]] bool joins(Ticket a, Ticket b) const noexcept {
    return a.entry() == b.entry() || (passed(a) && passed(b));
  }
  // A ticket that replaces both: at worst one of k_several.
  [[nodiscard]] Ticket joined(Ticket a, Ticket b) noexcept;

  // Submits the fences that tickets wait for. Calls the driver, so the caller holds no lock. If the
  // driver refuses a fence, the next one replaces it, and until then the memory is reusable on its
  // own queue only.
  void fence() noexcept;
  // Calls `fence` if many queues were created and released, so that their entries become reusable.
  void fence_if_due() noexcept;
  // Whether no work is left on the entry's queue, so that `fence` would pass its tickets at once.
  // Does not call the driver, so it may be false for work whose completion was not noticed yet.
  [[nodiscard]] bool is_idle(EntryIndex index) noexcept {
    const auto queue = queue_of(index);
    return queue && queue->is_known_idle();
  }
  // Whether no work is left on any queue that a ticket of k_several may wait for. Visits all
  // entries.
  [[nodiscard]] bool all_idle() noexcept;
  // Whether the ticket has passed or `fence` would pass it at once. `all_are_idle` is the result of
  // `all_idle`.
  [[nodiscard]] bool would_pass(Ticket ticket, bool all_are_idle) noexcept {
    return passed(ticket) ||
           (ticket.entry() == k_several ? all_are_idle && ticket != Ticket::never()
                                        : is_idle(ticket.entry()));
  }
  // Submits a fence to one queue, exported or not. Returns a ticket that passes when all work that
  // is on the queue now has completed. If no entry can be assigned to the queue, waits for that
  // work instead, and returns a passed ticket, or `never` if the wait failed.
  [[nodiscard]] Ticket fence_after(Queue& queue) noexcept;
  // The ticket of memory that is freed after all work that is on the queue now, exported or not.
  // Null: nothing uses the memory.
  [[nodiscard]] Ticket ticket_after(Queue* queue) noexcept;
  // Completion events of the work that tickets still wait for. Excludes tickets that wait only for
  // entry `index`, since a request on that queue can use their memory. Throws std::bad_alloc.
  [[nodiscard]] std::vector<Ref<Event>> running(EntryIndex index = k_no_queue);
  // Makes later work on `queue` wait, on the device, for the work of the ticket, and possibly for
  // more work. Errors as `Queue::fence`; throws std::bad_alloc.
  [[nodiscard]] Result<void> add_dependency(Ticket ticket, Queue& queue);
  // Drops the references to queues. Called when the pool is destroyed: pending fences may outlive
  // it, on threads that must not release a queue.
  void drop_queues() noexcept;

 private:
  static constexpr EntryIndex k_fence_every = 64;
  struct Fenced {
    Ref<Event> end;
    std::uint64_t number = 0;
  };
  class Passing;
  class PassingOfSeveral;

  ~QueueFences() override = default;
  [[nodiscard]] EntryIndex enter(Queue& queue) noexcept;
  [[nodiscard]] EntryIndex find_reusable(EntryIndex max_examined) noexcept ISTHMUS_REQUIRES(lock_);
  [[nodiscard]] static bool is_reusable(const QueueEntry& entry) noexcept;
  [[nodiscard]] static bool is_waited_for(const QueueEntry& entry) noexcept;
  [[nodiscard]] EntryIndex entry_of(Queue& queue) noexcept;
  [[nodiscard]] Ref<Queue> queue_of(EntryIndex index) noexcept;
  void submit(EntryIndex index, PassingOfSeveral* group) noexcept;
  void follow(EntryIndex index, PassingOfSeveral& group) noexcept;
  void record_fence(EntryIndex index, Fenced fenced) noexcept;
  [[nodiscard]] Fenced last_fence(EntryIndex index) noexcept;
  // A fence for all memory that waits for the entry's queue: the last one submitted, if it
  // suffices. Then the queue is not used, since its stream may belong to another library and may
  // have been destroyed. `end` is null if the queue accepts no fence.
  [[nodiscard]] Fenced covering_fence(EntryIndex index) noexcept;
  [[nodiscard]] bool try_submit(EntryIndex index, std::uint64_t number,
                                PassingOfSeveral* group) noexcept;
  void pass(EntryIndex index, std::uint64_t number) noexcept;

  SpinLock lock_;  // guards the assignment of entries, and their `queue`, `fence`, `fence_number`
  std::atomic<bool> fence_is_due_{false};
  std::atomic<std::uint64_t> passes_begun_{0};
  std::atomic<std::uint64_t> passes_ended_{0};
  QueueEntryTable entries_{k_several + 1};
  // The entry at which the last search for a reusable one ended.
  EntryIndex last_examined_ ISTHMUS_GUARDED_BY(lock_) = k_several + 1;
};

constexpr Ticket Ticket::never() noexcept {
  return {QueueFences::k_several, (std::uint64_t{1} << k_number_bits) - 1};
}

inline bool QueueFences::all_idle() noexcept {
  bool all = true;
  const auto used = entries_.used();
  for (EntryIndex each = k_several + 1; all && each < used; ++each) {
    all = !is_waited_for(entries_[each]) || is_idle(each);
  }
  return all;
}

inline bool QueueFences::is_usable(Ticket ticket, EntryIndex index) const noexcept {
  return ticket.entry() == index || passed(ticket) ||
         (index == k_any_queue && ticket != Ticket::never());
}

}  // namespace isthmus
