// SPDX-License-Identifier: Apache-2.0
#pragma once
// Manages the page runs of a pool, in regions obtained from the driver, and their entries in the
// page map.
//
// Where regions can move they are chunks, mapped at reserved addresses, and a run may span adjacent
// chunks. If no free run is long enough, free chunks are remapped side by side to new addresses,
// and only the missing bytes are requested from the driver. So fragmentation does not accumulate.
// GMLake (Guo et al., 2024) works similarly; here whole chunks move, and only while they are free.
// Where a chunk can be mapped at two addresses, memory freed on a queue moves for use on that queue
// before the queue's work has ended. Without this a training run holds 1.6 times the live bytes
// (H100), with it 1.014 times.

#include <atomic>
#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "core/spin_lock.hpp"
#include "memory/base/snapshot.hpp"
#include "memory/pool/page_map.hpp"
#include "memory/pool/region_source.hpp"
#include "memory/pool/run_heap.hpp"
#include "os/futex.hpp"

namespace isthmus {

class OwnCaches;

// Thread-safe. The driver is called outside `lock_`; freeing a run never calls it.
class RegionHeap {
 public:
  using Index = RunHeap::Index;
  struct PageRun {
    std::byte* base = nullptr;
    Index first = RunHeap::k_none;
    Index count = 0;
    Ticket until;  // passes when nothing uses the run any more
  };

  // `source` provides all memory of the heap, and must outlive the heap.
  RegionHeap(RegionSource& source, QueueSlots& slots) noexcept : source_{source}, slots_{slots} {}
  // Releases all regions. Pre: nothing in them is in use.
  ~RegionHeap();
  RegionHeap(const RegionHeap&) = delete;
  RegionHeap& operator=(const RegionHeap&) = delete;

  // Call before anything else. OUT_OF_MEMORY if the host has no address space for the table.
  [[nodiscard]] Result<void> open();

  // The free runs from which a request may be cut. Where regions cannot move, an unused region is
  // spared from requests of less than half its size if it is larger than the region that would be
  // requested from the driver: a spared region can be released (`release_unused`), but not with a
  // small block in it. Recorded table operations held 1.37 times the requested bytes when no region
  // was spared, and 1.17 times with sparing. `sparing` does not check whether work still uses a
  // region; `sparing_idle` spares only regions that no work uses; `any` spares none.
  enum class Cut { sparing, sparing_idle, any };
  // Allocates a run from free memory that is usable by the queue of `entry` (queue_slots.hpp). The
  // count is 0 if no run is long enough. `alignment` in bytes, a power of two.
  [[nodiscard]] PageRun allocate(Index count, std::size_t alignment, QueueSlots::EntryIndex entry,
                                 Cut cut = Cut::sparing) noexcept;
  // Joins neighbouring runs that waited for different queues and no longer wait.
  void coalesce() noexcept;
  // As `allocate`, but obtains more memory unless another thread added enough meanwhile. Errors as
  // `RegionSource::allocate`. Threads that call the driver wait for one another. Threads that call
  // an upstream resource do not wait: upstream may be code of the program that waits for this
  // thread.
  [[nodiscard]] Result<PageRun> grow(Index count, std::size_t alignment,
                                     QueueSlots::EntryIndex entry);
  // Adds a region of at least `nbytes` bytes.
  [[nodiscard]] Result<void> grow_by(std::size_t nbytes);
  void deallocate(Index first, Ticket freed) noexcept;
  // Releases free memory to the driver while more than `keep` bytes are held: whole regions and,
  // where regions divide, parts that are large enough. Returns the bytes released.
  std::size_t trim(std::size_t keep) noexcept;
  // Releases unused regions that could not serve the request, smallest first, until they amount to
  // the `needed` bytes about to be requested from the driver. Pre: regions cannot move.
  void release_unused(std::size_t needed) noexcept;
  // The number of threads that are calling the upstream resource. `wait_for_upstream` waits until
  // another thread has returned from such a call since `begin_upstream_wait` returned `seen` on
  // this thread. False if no thread is in such a call, or at the deadline `until`. CALLBACK if the
  // thread's interrupt function ended the wait.
  [[nodiscard]] std::uint32_t at_upstream() const noexcept {
    return at_upstream_.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::uint32_t begin_upstream_wait() const noexcept;
  [[nodiscard]] Result<bool> wait_for_upstream(std::uint32_t seen, const os::Deadline& until) const;

  [[nodiscard]] bool is_open() const noexcept { return table_ != nullptr; }
  [[nodiscard]] PoolPageTable& table() const noexcept { return *table_; }
  // Whether `record`, as found in the page map, belongs to this heap and not to another pool's.
  [[nodiscard]] bool has(const PoolPage* record) const noexcept {
    return &PoolPageTable::of(record) == table_;
  }
  // Whether the page of a map entry holds blocks of this heap of which none has an allocation
  // record.
  [[nodiscard]] bool has_bare_blocks(MapEntry::Seen seen) const noexcept {
    return seen.is_bare_of(table_, k_pool_page_table_alignment);
  }
  // Bytes of chunks that were removed from the heap and are released once the work on them has
  // ended. No request can use them, not even on the queue of that work.
  [[nodiscard]] std::size_t deferred_bytes() const noexcept {
    return deferred_bytes_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::size_t free_bytes() noexcept;
  // The minimum of the free bytes since the previous call: memory that no request needed.
  [[nodiscard]] std::size_t min_free_bytes() noexcept;
  // How the memory is used, and the pages of the longest run that a request of this thread could
  // obtain without more memory from the driver: `longest` includes the memory in the thread's
  // caches (`caches`); `longest_free` counts only free memory. Both are 0 if `caches` is null.
  struct Counted {
    Snapshot snapshot;
    Index longest = 0;
    Index longest_free = 0;
  };
  [[nodiscard]] Counted count(const OwnCaches* caches) const;
  // The order number (`Region::since`) at which the page's region was obtained from an upstream
  // resource; 0 if the driver allocated the region.
  [[nodiscard]] std::uint64_t since(const PoolPage& page) const noexcept;
  // INTERNAL if records contradict one another.
  [[nodiscard]] Result<void> verify() noexcept;

 private:
  class Assembly;
  // Held during driver calls, by one thread at a time; locked before `lock_`. With an upstream
  // resource in place of the driver it excludes no thread, and only counts the threads in a call.
  class Turn {
   public:
    explicit Turn(RegionHeap& heap) noexcept;
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    // Call before adding memory from which this thread will allocate a run: until the turn ends, no
    // whole region is released.
    void begin_adding() noexcept;

   private:
    RegionHeap& heap_;
    bool adds_memory_ = false;
  };
  static constexpr auto k_max_bytes = std::size_t{PoolPageTable::k_pages} * k_pool_page_bytes;
  // The minimum size, in pages, of a part of a chunk that divides. A smaller part is not worth a
  // separate mapping, of which a process on Linux can have about 65,000. A whole chunk may be
  // smaller, since no mapping of it remains.
  static constexpr Index k_min_part = 32;
  static constexpr std::uint32_t k_swap_cost = 16;
  static constexpr std::uint32_t k_max_swap_credit = 16 * k_swap_cost;
  // An unused region, or an unused part of one that divides.
  struct Unused {
    std::size_t position;  // of the region in `regions_`
    Index first;
    Index count;
    Index run;  // the free run that contains it
    Ticket until;
  };
  // A region that was removed from the heap, or the old mapping of a region that moved
  // (`is_old_mapping`). Nothing uses it once `until` has passed.
  struct Piece {
    Region region;
    Ticket until;
    bool is_old_mapping = false;
  };

  struct SpanOfPages {
    Index first = RunHeap::k_none;
    Index count = 0;
  };

  // Poisons free pages if nothing uses them; returns whether it did. Pre: the lock is held.
  bool poison_if_unused(Index first, Index count, Ticket until) const noexcept;
  void poison_ended_runs() const noexcept;
  struct FreeRun {
    Index count;
    Ticket until;
  };
  [[nodiscard]] std::optional<FreeRun> free_run_at(Index first) const noexcept;
  [[nodiscard]] std::size_t live_blocks_in(Slab& slab) const noexcept;
  class Stretches;
  [[nodiscard]] Index movable_in(Index first, Index end) const noexcept;
  [[nodiscard]] std::pair<Index, Index> some_movable_in(Index first, Index end) const noexcept;
  [[nodiscard]] Index max_movable(Index movable) const noexcept;
  [[nodiscard]] SpanOfPages pages_from(Index number) const noexcept;
  [[nodiscard]] static Error exceeds_max(std::size_t nbytes);
  [[nodiscard]] Result<void> grow_for(Index count, std::size_t alignment,
                                      QueueSlots::EntryIndex entry, Turn& turn);
  [[nodiscard]] Result<void> add_region(std::size_t nbytes, Turn& turn);
  [[nodiscard]] Result<void> assemble(std::size_t needed, std::size_t wanted,
                                      QueueSlots::EntryIndex entry);
  [[nodiscard]] Result<bool> assemble_from(std::vector<Piece> to_move, std::size_t needed,
                                           std::size_t wanted);
  [[nodiscard]] Result<void> enter(std::vector<Piece>& row);
  // Pre, of the next five: `growing_` is held, or regions cannot move.
  [[nodiscard]] bool has_old_mapping(const Region& region) const noexcept;
  [[nodiscard]] bool is_releasable(const Piece& piece) const noexcept;
  void release_now(const Piece& piece) noexcept;
  void drop(const Piece& piece) noexcept;  // Pre: `deferred_` has capacity for it
  std::size_t drop_ended() noexcept;       // bytes released to the driver
  template <class Visit>
  bool any_row(Visit&& visit) noexcept;
  [[nodiscard]] Index unite(Index wanted, QueueSlots::EntryIndex entry,
                            std::unique_lock<SpinLock>& hold) noexcept;
  void unite_all(QueueSlots::EntryIndex entry, std::unique_lock<SpinLock>& hold) noexcept;
  [[nodiscard]] Index find_numbers(Index count) noexcept;
  [[nodiscard]] Index min_releasable() const noexcept;
  [[nodiscard]] std::vector<Unused> find_unused(QueueSlots::EntryIndex entry) const;
  [[nodiscard]] std::vector<Region> remove_unused(const std::vector<Unused>& unused);
  [[nodiscard]] std::vector<Piece> remove_to_move(std::size_t needed, QueueSlots::EntryIndex entry);
  [[nodiscard]] std::vector<Region> remove_to_trim(std::size_t keep);
  [[nodiscard]] Region remove_smallest_free(std::size_t max_bytes) noexcept;
  [[nodiscard]] bool is_spared(Index found, Index count, Cut cut) const noexcept;
  std::size_t trim_one_by_one(std::size_t keep) noexcept;
  [[nodiscard]] std::vector<Region>::const_iterator region_of(Index number) const noexcept;
  [[nodiscard]] std::byte* address_of(Index first) const noexcept;

  RegionSource& source_;
  QueueSlots& slots_;
  PoolPageTable* table_ = nullptr;
  std::mutex growing_;
  std::vector<Piece> deferred_;                 // under `growing_`: released once unused
  std::atomic<std::size_t> deferred_bytes_{0};  // of the whole chunks in `deferred_`
  std::atomic<std::uint32_t> turns_adding_{0};  // turns that added memory
  std::atomic<std::uint32_t> at_upstream_{0};
  std::atomic<std::uint32_t> upstream_returns_{0};  // upstream calls that have returned
  mutable SpinLock lock_;
  RunHeap runs_{nullptr, nullptr, nullptr, slots_};
  std::optional<std::uint64_t> coalesced_at_;  // `QueueSlots::passes` at the last `coalesce`
  // The last search for usable neighbours that failed, so that it is not repeated in the same
  // state.
  struct {
    std::optional<RunHeap::State> state;
    Index wanted = 0;
    QueueSlots::EntryIndex entry = QueueSlots::k_no_queue;
  } failed_search_;
  std::uint64_t min_free_ = 0;  // in pages
  // Credit for releasing a region to obtain a smaller one: a request earns one, a swap costs
  // sixteen, so that a program that alternates between large and small requests seldom waits for
  // the driver.
  std::uint32_t swap_credit_ = k_max_swap_credit;
  std::vector<Region> regions_;  // sorted by first page
};

// Calls visit(first, count) for each row of adjacent regions, which runs may span, until it returns
// true. Pre: the lock is held.
template <class Visit>
bool RegionHeap::any_row(Visit&& visit) noexcept {
  for (auto each = regions_.begin(); each != regions_.end();) {
    const auto first = each->first;
    auto end = first;
    for (; each != regions_.end() && each->first == end; ++each) {
      end += each->count;
    }
    if (visit(first, end - first)) {
      return true;
    }
  }
  return false;
}

}  // namespace isthmus
