// SPDX-License-Identifier: Apache-2.0
#pragma once
// Page runs: found, split and joined in constant time.
//
// Two-level segregated fit (Masmano et al., 2004) with all bookkeeping in the table of pages
// (`grain`): lists of free runs by length, sixteen per doubling, and bitmaps of the lists that are
// not empty. The first few runs of a request's own list are tried before the next longer list, so
// that exact lengths are found again. A run is joined with its free neighbours when it is freed, if
// both are usable by the same queues (queue_slots.hpp): otherwise free memory would have to wait
// for its neighbour's work. `settle` joins the remaining neighbours later, `unite` joins some for
// one request. A set holds the borders between them, so that neither visits any other run.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "memory/grain_table.hpp"

namespace isthmus {

// Not thread-safe: guarded by the pool's lock. Nothing here allocates or fails.
class run_heap {
 public:
  using index = grain_table::index;
  static constexpr index k_none = grain_table::k_none;

  // `tickets` has an element for every record of the table; those of first pages count. `borders`
  // is empty.
  run_heap(grain* table, ticket* tickets, grain_set* borders, queue_slots& slots) noexcept
      : table_{table}, tickets_{tickets}, borders_{borders}, slots_{&slots} {}

  // Adds a region, free as a whole. Pre: the records before and after it stay `none`.
  void add(index first, index count, ticket until = {}) noexcept;
  // Removes pages of a region. Pre: they lie in the free run that begins at `run`, whose other
  // pages stay.
  void remove(index run, index first, index count) noexcept;
  // visit(first, count, ticket) for every free run of at least `at_least` pages.
  template <class Visit>
  void visit_free(index at_least, Visit&& visit) const;

  // The first page of a free run of at least `count` pages that is usable by queue entry `whom`;
  // k_none if none was found. Examines only a few runs of each list, so it may miss one that comes
  // after waiting ones.
  [[nodiscard]] index find(index count, queue_slots::slot whom) const noexcept;
  [[nodiscard]] index length_of(index first) const noexcept {
    return table_[first].span.load(k_relaxed);
  }
  // Cuts a free run to its first `count` pages, which become live and keep its ticket.
  void take(index first, index count) noexcept;
  [[nodiscard]] ticket ticket_of(index first) const noexcept { return tickets_[first]; }
  // Keeps `count` pages, from `skip` on, of a run that was taken, and frees the rest. Returns the
  // first page kept.
  index keep(index first, index skip, index count) noexcept;
  // Pre: the first page of a run that was taken.
  void give(index first, ticket freed) noexcept;
  // The following functions process a limited number of free runs per call, so that the caller can
  // release its lock between calls. They begin at number 1; `next` is k_none when nothing is left.
  static constexpr int k_most_looks = 256;  // a few microseconds of work
  struct progress {
    index next = 1;
    index found = k_none;
  };
  // Joins neighbours that could not be joined when they were freed and can be now.
  [[nodiscard]] progress settle(index from) noexcept;
  // Joins all neighbours that are usable by queue entry `whom`, whatever their length.
  [[nodiscard]] progress unite_all(index from, queue_slots::slot whom) noexcept;
  // A search for neighbours that are all usable by one queue and together long enough. They are
  // counted before they are joined, since joined they are usable by fewer queues. Counted runs may
  // be taken while the lock is released, so everything is checked again when they are joined.
  struct search : progress {
    index first = k_none;  // of the neighbours being counted or joined; k_none: none
    index end = k_none;    // where those found so far end
    bool joins = false;    // they sufficed when they were counted
  };
  // Joins no more neighbours than needed for `wanted` pages; then `found` is the run. Only tests
  // pass a smaller `most_looks`.
  void unite(search& on, index wanted, queue_slots::slot whom,
             int most_looks = k_most_looks) noexcept;

  struct finding {
    index at;                      // k_none: all is consistent
    std::uint64_t free = 0;        // pages
    std::uint64_t neighbours = 0;  // free runs that end where another begins
  };
  // The first record in a row of regions that contradicts its neighbours or its list.
  [[nodiscard]] finding look_for_damage(index first, index count) const noexcept;
  [[nodiscard]] std::uint64_t free_grains() const noexcept { return free_; }
  // Pairs of adjacent free runs that could not be joined when they were freed.
  [[nodiscard]] std::uint64_t neighbours() const noexcept { return borders_->size(); }
  // While it is unchanged, neighbours that did not suffice still do not.
  struct state {
    std::uint64_t borders = 0;  // created so far
    std::uint64_t passes = 0;   // `queue_slots::passes`
    bool operator==(const state&) const noexcept = default;
  };
  // Empty if the state is about to change.
  [[nodiscard]] std::optional<state> now() const noexcept {
    const auto passes = slots_->passes();
    return passes ? std::optional{state{borders_made_, *passes}} : std::nullopt;
  }

 private:
  static constexpr unsigned k_lists_bits = 4;
  static constexpr unsigned k_lists = 1U << k_lists_bits;  // per doubling
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
  std::uint32_t doublings_ = 0;  // bit i: some list of doubling i is not empty
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
