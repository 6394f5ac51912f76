#pragma once
// Queue order in a pool: who may have memory that was freed behind work which may still run.
//
// A queue that memory is freed behind has a slot, and the memory a ticket: the slot, and the number
// of the queue's fence that has passed only when that work has ended. On its own queue memory is
// good at once, since what uses it next comes behind that work; elsewhere once the fence has
// passed, which is a plain load. A free submits nothing: fences are submitted where somebody found
// too little memory that is good for him (`fence`).

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "backend/queue.hpp"
#include "core/spin_lock.hpp"
#include "memory/queue_slot_table.hpp"

namespace isthmus {

class ticket {
 public:
  // Nothing uses the memory.
  constexpr ticket() noexcept = default;
  constexpr ticket(unsigned slot, std::uint64_t number) noexcept
      : bits_{std::uint64_t{slot} << k_number_bits | number} {}

  // Passes at no time: of memory that somebody may still use, and nobody can tell.
  [[nodiscard]] static constexpr ticket never() noexcept;

  [[nodiscard]] constexpr unsigned slot() const noexcept {
    return static_cast<unsigned>(bits_ >> k_number_bits);
  }
  [[nodiscard]] constexpr std::uint64_t number() const noexcept {
    return bits_ & ((std::uint64_t{1} << k_number_bits) - 1);
  }
  friend constexpr bool operator==(ticket, ticket) noexcept = default;

 private:
  static constexpr unsigned k_number_bits = 48;
  std::uint64_t bits_ = 0;
};

// Safe for threads. Counted, since fences on their way outlive their pool.
class queue_slots final : public ref_counted {
 public:
  using slot = queue_slot_table::index;
  static constexpr slot k_quiet = queue_slot_table::k_none;  // no queue's
  static constexpr slot k_several = 1;  // of memory behind more than one queue: all of the pool's
  // The caller waits for the work itself.
  static constexpr slot k_anybody = queue_slot_table::k_max;

  // k_quiet for none and for queues that are not `in_one_order`: there too memory is good only when
  // its fence has passed. Also where all slots are in use.
  [[nodiscard]] slot find(queue* on) noexcept;
  // While a lane keeps memory freed behind the slot's queue, for which there is no ticket yet, the
  // slot serves no other queue.
  void attach_lane(slot of) noexcept { entries_[of].lanes.fetch_add(1, std::memory_order_relaxed); }
  void detach_lane(slot of) noexcept { entries_[of].lanes.fetch_sub(1, std::memory_order_release); }

  // How many fences have passed so far: while it stays the same no ticket passes. Nothing where
  // another is about to.
  [[nodiscard]] std::optional<std::uint64_t> passes() const noexcept {
    const auto ended = passes_ended_.load(std::memory_order_acquire);
    const auto begun = passes_begun_.load(std::memory_order_acquire);
    return begun == ended ? std::optional{ended} : std::nullopt;
  }

  // The queue of that serial number, held, where it has a slot and not pools alone know it.
  [[nodiscard]] ref<queue> find(std::uint64_t serial) noexcept;

  // Whether it has a slot, or gets one: lent queues too.
  [[nodiscard]] bool have_room_for(queue& on) noexcept { return entry_of(on) != k_quiet; }

  // For memory that is freed behind all work on the slot's queue.
  [[nodiscard]] ticket next(slot of) noexcept;
  [[nodiscard]] bool passed(ticket of) const noexcept {
    return of.number() <= entries_[of.slot()].done.load(std::memory_order_acquire);
  }
  [[nodiscard]] bool good(ticket of, slot whom) const noexcept;
  // Whether one ticket stands for both, and is good for whomever one of them was good for.
  [[nodiscard]] bool joins(ticket a, ticket b) const noexcept {
    return a.slot() == b.slot() || (passed(a) && passed(b));
  }
  // What stands for both, at worst a ticket of several.
  [[nodiscard]] ticket joined(ticket a, ticket b) noexcept;

  // Submits the fences that tickets are waiting for. Calls the driver: outside all locks. One that
  // it refuses is submitted with the next; memory then stays with its own queue.
  void fence() noexcept;
  // The same where many queues came and went, so that their slots serve others.
  void fence_if_due() noexcept;
  // Whether no work is left on the slot's queue: `fence` would pass its tickets at once. Asks no
  // driver; false also where an end has not been noticed yet.
  [[nodiscard]] bool is_idle(slot of) noexcept {
    const auto on = queue_of(of);
    return on && on->quiet();
  }
  // Whether no work is left on any queue that a ticket of several may wait for. Looks at all slots.
  [[nodiscard]] bool all_idle() noexcept;
  // Whether `fence` would pass it at once, if it has not passed. `all_are_idle`: of `all_idle`.
  [[nodiscard]] bool would_pass(ticket of, bool all_are_idle) noexcept {
    return passed(of) ||
           (of.slot() == k_several ? all_are_idle && of != ticket::never() : is_idle(of.slot()));
  }
  // The same for one queue, lent or not: a ticket that passes when all that is on it now has ended;
  // quiet if it has. Waits where there is neither slot nor memory for it.
  [[nodiscard]] ticket fence_behind(queue& on) noexcept;
  // For what is freed behind all that is on a queue now, lent or not; null: nothing uses it.
  [[nodiscard]] ticket behind(queue* on) noexcept;
  // The ends of what is on the queues that tickets still wait for, but for those that wait for
  // `whom` alone, to which their memory is good. Throws std::bad_alloc.
  [[nodiscard]] std::vector<ref<event>> running(slot whom = k_quiet);
  // What is submitted to `on` from here on runs once the ticket's work, and maybe more, has ended.
  // Errors as `queue::fence`; throws std::bad_alloc. Pre: not `never`.
  [[nodiscard]] result<void> wait_behind(ticket of, queue& on);
  // When the pool goes: fences on their way may outlive it, on threads that must not let a queue
  // go.
  void forget_queues() noexcept;

 private:
  static constexpr slot k_fence_every = 64;
  struct fenced {
    ref<event> end;
    std::uint64_t number = 0;
  };
  class passing;
  class passing_of_several;

  ~queue_slots() override = default;
  [[nodiscard]] slot enter(queue& on) noexcept;
  [[nodiscard]] slot find_over(slot most_looks) noexcept;
  [[nodiscard]] static bool is_over(const queue_slot& in) noexcept;
  [[nodiscard]] static bool is_waited_for(const queue_slot& in) noexcept;
  [[nodiscard]] slot entry_of(queue& on) noexcept;
  [[nodiscard]] ref<queue> queue_of(slot of) noexcept;
  void submit(slot of, passing_of_several* also) noexcept;
  void follow(slot of, passing_of_several& also) noexcept;
  void note_fence(slot of, fenced made) noexcept;
  [[nodiscard]] fenced last_fence(slot of) noexcept;
  // A fence for all that waits there: the last one, where it will do. Then the queue is not asked:
  // its stream may be others', and have gone since. No end: the queue cannot tell.
  [[nodiscard]] fenced covering(slot of) noexcept;
  [[nodiscard]] bool try_submit(slot of, std::uint64_t number, passing_of_several* also) noexcept;
  void pass(slot of, std::uint64_t number) noexcept;

  spin_lock lock_;  // over entering a queue
  std::atomic<bool> fence_is_due_{false};
  std::atomic<std::uint64_t> passes_begun_{0};
  std::atomic<std::uint64_t> passes_ended_{0};
  queue_slot_table entries_{k_several + 1};
  slot oldest_ = k_several + 1;  // where to look for a slot whose queue is over; under the lock
};

constexpr ticket ticket::never() noexcept {
  return {queue_slots::k_several, (std::uint64_t{1} << k_number_bits) - 1};
}

inline bool queue_slots::all_idle() noexcept {
  bool found = true;
  const auto used = entries_.used();
  for (slot each = k_several + 1; found && each < used; ++each) {
    found = !is_waited_for(entries_[each]) || is_idle(each);
  }
  return found;
}

inline bool queue_slots::good(ticket of, slot whom) const noexcept {
  return of.slot() == whom || passed(of) || (whom == k_anybody && of != ticket::never());
}

}  // namespace isthmus
