// SPDX-License-Identifier: Apache-2.0
#pragma once
// Manages page runs: finds, splits and joins them in constant time.
//
// Two-level segregated fit (Masmano et al., 2004) with all bookkeeping in the table of pages
// (`PoolPageTable`): lists of free runs by length, sixteen per doubling, and bitmaps of the lists
// that are not empty. The first few runs of a request's own list are tried before the next longer
// list, so that exact lengths are found again. A run is joined with its free neighbours when it is
// freed, if both are usable by the same queues (queue_fences.hpp): otherwise free memory would have
// to wait for its neighbour's work. `coalesce` joins the remaining neighbours later, `unite` joins
// some for one request. A set holds the borders between them, so that neither visits any other run.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "memory/pool/pool_page_table.hpp"

namespace isthmus {

// Not thread-safe: guarded by the pool's lock. Nothing here allocates or fails.
class RunHeap {
 public:
  using Index = PoolPageTable::Index;
  static constexpr Index k_none = PoolPageTable::k_none;

  // `tickets` has an element for every record of the table, but only those of first pages are used.
  // `borders` is empty.
  RunHeap(PoolPage* table, Ticket* tickets, PoolPageSet* borders, QueueFences& fences) noexcept
      : table_{table}, tickets_{tickets}, borders_{borders}, fences_{&fences} {}

  // Adds a region, free as a whole. The records before and after the region remain `none`.
  void add(Index first, Index count, Ticket until = {}) noexcept;
  // Removes pages from the free run that begins at `run`. The other pages of that run remain free.
  void remove(Index run, Index first, Index count) noexcept;
  // visit(first, count, ticket) for every free run of at least `min_count` pages.
  template <class Visit>
  void visit_free(Index min_count, Visit&& visit) const;

  // The first page of a free run of at least `count` pages that is usable by the queue of `entry`;
  // k_none if none was found. Examines only a few runs of each list, so it may miss one that comes
  // after waiting ones.
  [[nodiscard]] Index find(Index count, QueueFences::EntryIndex entry) const noexcept;
  [[nodiscard]] Index length_of(Index first) const noexcept {
    return table_[first].span.load(k_relaxed);
  }
  // Allocates the first `count` pages of a free run, which become live and retain its ticket. The
  // rest remains free.
  void allocate(Index first, Index count) noexcept;
  [[nodiscard]] Ticket ticket_of(Index first) const noexcept { return tickets_[first]; }
  // Shrinks an allocated run to the `count` pages from `skip` on, and frees the rest. Returns the
  // first remaining page.
  Index keep_part(Index first, Index skip, Index count) noexcept;
  // `first` is the first page of an allocated run.
  void deallocate(Index first, Ticket freed) noexcept;
  // The following functions process a limited number of free runs per call, so that the caller can
  // release its lock between calls. The first call begins at number 1; `next` is k_none when
  // nothing is left.
  static constexpr int k_max_examined = 256;  // a few microseconds of work
  struct Progress {
    Index next = 1;
    Index found = k_none;
  };
  // Joins neighbours that could not be joined when they were freed and can be now.
  [[nodiscard]] Progress coalesce(Index index) noexcept;
  // Joins all neighbours that are usable by the queue of `entry`, whatever their length.
  [[nodiscard]] Progress unite_all(Index index, QueueFences::EntryIndex entry) noexcept;
  // A search for neighbours that are all usable by one queue and together long enough. They are
  // counted before they are joined, since joined runs are usable by fewer queues. Counted runs may
  // be allocated while the lock is released, so everything is checked again when they are joined.
  struct Search : Progress {
    Index first = k_none;  // of the neighbours being counted or joined; k_none: none
    Index end = k_none;    // the end of the neighbours found so far
    bool joins = false;    // they sufficed when they were counted
  };
  // Joins no more neighbours than needed for `wanted` pages; then `found` is the run. Only tests
  // pass a smaller `max_examined`.
  void unite(Search& search, Index wanted, QueueFences::EntryIndex entry,
             int max_examined = k_max_examined) noexcept;

  struct Finding {
    Index at;                      // k_none: all is consistent
    std::uint64_t free = 0;        // pages
    std::uint64_t neighbours = 0;  // free runs that end where another begins
  };
  // The first record in a row of regions that contradicts its neighbours or its list.
  [[nodiscard]] Finding find_damage(Index first, Index count) const noexcept;
  [[nodiscard]] std::uint64_t free_pages() const noexcept { return free_; }
  // Pairs of adjacent free runs that could not be joined when they were freed.
  [[nodiscard]] std::uint64_t neighbours() const noexcept { return borders_->size(); }
  // While this is unchanged, a search for neighbours that failed would fail again.
  struct State {
    std::uint64_t borders = 0;  // created so far
    std::uint64_t passes = 0;   // `QueueFences::passes`
    bool operator==(const State&) const noexcept = default;
  };
  // Empty if the state is about to change.
  [[nodiscard]] std::optional<State> state() const noexcept {
    const auto passes = fences_->passes();
    return passes ? std::optional{State{borders_added_, *passes}} : std::nullopt;
  }

 private:
  static constexpr unsigned k_lists_bits = 4;
  static constexpr unsigned k_lists = 1U << k_lists_bits;  // per doubling
  static constexpr unsigned k_doublings = 32 - k_lists_bits + 1;
  struct List {
    unsigned doubling;
    unsigned part;
  };

  [[nodiscard]] static List list_for(Index count) noexcept;
  [[nodiscard]] bool is_sound_free(Index first) const noexcept;
  [[nodiscard]] bool is_sound_allocated(Index first) const noexcept;
  [[nodiscard]] Index usable_in(List list, Index count,
                                QueueFences::EntryIndex entry) const noexcept;
  [[nodiscard]] bool next_longer(List& list) const noexcept;
  [[nodiscard]] Index first_before(Index first) const noexcept;
  void add_border(Index border) noexcept;
  Index join(Index first) noexcept;
  void join_two(Index first) noexcept;
  [[nodiscard]] bool is_free(Index first) const noexcept;
  [[nodiscard]] bool is_free_for(Index first, QueueFences::EntryIndex entry) const noexcept;
  void unite_one(Search& search, Index wanted, QueueFences::EntryIndex entry) noexcept;
  void begin_one(Search& search, Index wanted, QueueFences::EntryIndex entry) const noexcept;
  void count_one(Search& search, Index wanted, QueueFences::EntryIndex entry) const noexcept;
  void join_one(Search& search, Index wanted, QueueFences::EntryIndex entry) noexcept;
  void link(Index first, Index count) noexcept;
  void unlink(Index first) noexcept;
  void mark_allocated(Index first, Index count) noexcept;

  PoolPage* table_;
  Ticket* tickets_;
  PoolPageSet* borders_;
  QueueFences* fences_;
  std::uint64_t free_ = 0;
  std::uint64_t borders_added_ = 0;
  std::uint32_t doublings_ = 0;  // bit i: some list of doubling i is not empty
  std::array<std::uint32_t, k_doublings> parts_{};
  std::array<std::array<Index, k_lists>, k_doublings> heads_{};
};

template <class Visit>
void RunHeap::visit_free(Index min_count, Visit&& visit) const {
  auto list = list_for(min_count);
  do {
    for (auto at = heads_.at(list.doubling).at(list.part); at != k_none; at = table_[at].next()) {
      if (const auto count = table_[at].span.load(k_relaxed); count >= min_count) {
        visit(at, count, tickets_[at]);
      }
    }
  } while (next_longer(list));
}

}  // namespace isthmus
