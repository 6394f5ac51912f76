#pragma once
// Runs of grains: found, split and joined in constant time.
//
// Two-level segregated fit (Masmano et al., 2004) with all bookkeeping in the table of grains:
// lists of free runs by length, sixteen to every doubling, and bitmaps of the lists that are not
// empty. The first run of a request's own list is tried before the next longer list is, which finds
// exact lengths again. A run is joined with its free neighbours as it is freed, where both are good
// for the same queues (queue_slots.hpp): what is free would wait for its neighbour's work else.
// `settle` joins the others later, `unite` for one request.

#include <array>
#include <cstddef>
#include <cstdint>

#include "memory/grain_table.hpp"

namespace isthmus {

// Not safe for threads: a pool's lock stands around it. Nothing here allocates or fails.
class run_heap {
 public:
  using index = grain_table::index;
  static constexpr index k_none = grain_table::k_none;

  // `tickets` has one for every record of the table; those of firsts count.
  run_heap(grain* table, ticket* tickets, queue_slots& slots) noexcept
      : table_{table}, tickets_{tickets}, slots_{&slots} {}

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
  // Joins what could not be joined when it was freed and can be now, of one row of regions.
  void settle(index first, index count) noexcept;
  // Joins neighbours in it that are all good for the queue in slot `whom`, if they come to `wanted`
  // grains; false if none do.
  bool unite(index first, index count, index wanted, queue_slots::slot whom) noexcept;

  // The same for all such neighbours, however long.
  void unite_all(index first, index count, queue_slots::slot whom) noexcept;

  struct finding {
    index at;                      // k_none: all is as it must be
    std::uint64_t free = 0;        // grains
    std::uint64_t neighbours = 0;  // free runs that end where another begins
  };
  // The first record in a row of regions that contradicts those around it or its list.
  [[nodiscard]] finding look_for_damage(index first, index count) const noexcept;
  [[nodiscard]] std::uint64_t free_grains() const noexcept { return free_; }
  // Pairs of free runs that lie side by side, since they could not be joined when they were freed.
  [[nodiscard]] std::uint64_t neighbours() const noexcept { return neighbours_; }

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
  [[nodiscard]] index behind(index first) const noexcept;
  [[nodiscard]] unsigned free_neighbours(index first, index count) const noexcept;
  index join(index first) noexcept;
  void join_all(index first, index end) noexcept;
  template <class Visit>
  bool any_good(index first, index count, queue_slots::slot whom, Visit&& visit) noexcept;
  void link(index first, index count) noexcept;
  void unlink(index first) noexcept;
  void mark_taken(index first, index count) noexcept;

  grain* table_;
  ticket* tickets_;
  queue_slots* slots_;
  std::uint64_t free_ = 0;
  std::uint64_t neighbours_ = 0;  // pairs of free runs side by side
  std::uint32_t doublings_ = 0;   // those with a list that is not empty
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
