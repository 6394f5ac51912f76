#pragma once
// Runs of grains: found, split and joined in constant time.
//
// Two-level segregated fit (Masmano et al., 2004) with all bookkeeping in the table of grains:
// lists of free runs by length, sixteen to every doubling, and bitmaps of the lists that are not
// empty. The first run of a request's own list is tried before the next longer list is, which finds
// exact lengths again. A run is joined with its free neighbours as it is freed, where both are good
// for the same queues (queue_slots.hpp): what is free would wait for its neighbour's work else.
// `settle` joins the others later, `unite` for one request: a set has the borders between them, so
// that neither looks at any other run.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "memory/grain_table.hpp"

namespace isthmus {

// Not safe for threads: a pool's lock stands around it. Nothing here allocates or fails.
class run_heap {
 public:
  using index = grain_table::index;
  static constexpr index k_none = grain_table::k_none;

  // `tickets` has one for every record of the table; those of firsts count. `borders` is empty.
  run_heap(grain* table, ticket* tickets, grain_set* borders, queue_slots& slots) noexcept
      : table_{table}, tickets_{tickets}, borders_{borders}, slots_{&slots} {}

  // A new region, free as a whole. Pre: the records before and behind it stay `none`.
  void add(index first, index count, ticket until = {}) noexcept;
  // Takes a region out again. Pre: it lies in the free run that begins at `run`; what is left of
  // that before and behind it stays.
  void remove(index run, index first, index count) noexcept;
  // visit(first, count, ticket) for every free run of at least so many.
  template <class Visit>
  void visit_free(index at_least, Visit&& visit) const;

  // The first grain of a free run of at least `count` that is good for the queue in slot `whom`;
  // k_none if none is long enough. Looks at a few runs of a length at most, so that it may miss one
  // behind others that wait.
  [[nodiscard]] index find(index count, queue_slots::slot whom) const noexcept;
  [[nodiscard]] index length_of(index first) const noexcept {
    return table_[first].span.load(k_relaxed);
  }
  // Cuts a free run to its first `count`, which are live then, and keep its ticket.
  void take(index first, index count) noexcept;
  [[nodiscard]] ticket ticket_of(index first) const noexcept { return tickets_[first]; }
  // Keeps `count` grains from `skip` on of a run that was taken, and gives back the rest.
  index keep(index first, index skip, index count) noexcept;
  // Pre: the first of a run that was taken.
  void give(index first, ticket freed) noexcept;
  // The following look at some free runs at a time, so that the caller can release its lock before
  // the next ones. They begin at number 1, and `next` is k_none when nothing is left.
  static constexpr int k_most_looks = 256;  // a few microseconds' work
  struct progress {
    index next = 1;
    index found = k_none;
  };
  // Joins what could not be joined when it was freed and can be now.
  [[nodiscard]] progress settle(index from) noexcept;
  // Joins all neighbours that are good for the queue in slot `whom`, however long.
  [[nodiscard]] progress unite_all(index from, queue_slots::slot whom) noexcept;
  // A search for neighbours that are all good for one queue and together long enough. They are
  // counted before they are joined: joined, they are good for fewer queues. Runs that were counted
  // may go while the lock is free, so that all is checked again as they are joined.
  struct search : progress {
    index first = k_none;  // of the neighbours that are being counted or joined; k_none: of none
    index end = k_none;    // of those so far
    bool joins = false;    // they were enough when they were counted
  };
  // Joins no more of them than come to `wanted` grains: then that run is `found`. Only tests ask
  // for fewer looks.
  void unite(search& on, index wanted, queue_slots::slot whom,
             int most_looks = k_most_looks) noexcept;

  struct finding {
    index at;                      // k_none: all is as it must be
    std::uint64_t free = 0;        // grains
    std::uint64_t neighbours = 0;  // free runs that end where another begins
  };
  // The first record in a row of regions that contradicts those around it or its list.
  [[nodiscard]] finding look_for_damage(index first, index count) const noexcept;
  [[nodiscard]] std::uint64_t free_grains() const noexcept { return free_; }
  // Pairs of free runs that lie side by side, since they could not be joined when they were freed.
  [[nodiscard]] std::uint64_t neighbours() const noexcept { return borders_->size(); }
  // While it stays the same, neighbours that did not serve do not serve.
  struct state {
    std::uint64_t borders = 0;  // that came about so far
    std::uint64_t passes = 0;   // of tickets
    bool operator==(const state&) const noexcept = default;
  };
  // Nothing where it is about to change.
  [[nodiscard]] std::optional<state> now() const noexcept {
    const auto passes = slots_->passes();
    return passes ? std::optional{state{borders_made_, *passes}} : std::nullopt;
  }

 private:
  static constexpr unsigned k_lists_bits = 4;
  static constexpr unsigned k_lists = 1U << k_lists_bits;  // to a doubling
  static constexpr unsigned k_doublings = 32 - k_lists_bits + 1;
  struct list {
    unsigned doubling;
    unsigned part;
  };

  [[nodiscard]] static list list_for(index count) noexcept;
  [[nodiscard]] bool is_sound_free(index first) const noexcept;
  [[nodiscard]] bool is_sound_taken(index first) const noexcept;
  [[nodiscard]] index good_in(list in, index count, queue_slots::slot whom) const noexcept;
  [[nodiscard]] bool next_longer(list& than) const noexcept;
  [[nodiscard]] index first_before(index first) const noexcept;
  void add_border(index at) noexcept;
  index join(index first) noexcept;
  void join_two(index first) noexcept;
  [[nodiscard]] bool is_free(index first) const noexcept;
  [[nodiscard]] bool is_free_for(index first, queue_slots::slot whom) const noexcept;
  void unite_one(search& on, index wanted, queue_slots::slot whom) noexcept;
  void begin_one(search& on, index wanted, queue_slots::slot whom) const noexcept;
  void count_one(search& on, index wanted, queue_slots::slot whom) const noexcept;
  void join_one(search& on, index wanted, queue_slots::slot whom) noexcept;
  void link(index first, index count) noexcept;
  void unlink(index first) noexcept;
  void mark_taken(index first, index count) noexcept;

  grain* table_;
  ticket* tickets_;
  grain_set* borders_;
  queue_slots* slots_;
  std::uint64_t free_ = 0;
  std::uint64_t borders_made_ = 0;
  std::uint32_t doublings_ = 0;  // those with a list that is not empty
  std::array<std::uint32_t, k_doublings> parts_{};
  std::array<std::array<index, k_lists>, k_doublings> heads_{};
};

template <class Visit>
void run_heap::visit_free(index at_least, Visit&& visit) const {
  auto in = list_for(at_least);
  do {
    for (auto at = heads_.at(in.doubling).at(in.part); at != k_none; at = table_[at].after()) {
      if (const auto count = table_[at].span.load(k_relaxed); count >= at_least) {
        visit(at, count, tickets_[at]);
      }
    }
  } while (next_longer(in));
}

}  // namespace isthmus
