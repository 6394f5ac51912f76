// SPDX-License-Identifier: Apache-2.0
#pragma once
// Manages the page runs of a pool, in regions obtained from the driver, and their entries in the
// page map.
//
// Where regions can move they are chunks, mapped at reserved addresses, and a run may span adjacent
// chunks. If no free run is long enough, free chunks are remapped side by side to new addresses
// (region_assembler.hpp), and only the missing bytes are requested from the driver. So
// fragmentation does not accumulate. GMLake (Guo et al., 2024) works similarly; here whole chunks
// move, and only while they are free. Where a chunk can be mapped at two addresses, memory freed on
// a queue moves for use on that queue before the queue's work has ended. Without this a training
// run holds 1.6 times the live bytes (H100), with it 1.014 times.
//
// Other units add, remove and count regions:
//   RegionGrowth      adds regions               region_growth.hpp
//   RegionAssembler   moves chunks together      region_assembler.hpp
//   RegionTrim        returns regions            region_trim.hpp
//   UnusedRegions     finds and removes them     unused_regions.hpp
//   RegionCount       counts them                region_count.hpp

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/spin_lock.hpp"
#include "core/thread_safety.hpp"
#include "memory/pool/page_map.hpp"
#include "memory/pool/region_list.hpp"
#include "memory/pool/region_source.hpp"
#include "memory/pool/run_heap.hpp"

namespace isthmus {

// Credit for releasing a region to obtain a smaller one: a request earns one, a swap costs sixteen,
// so that a program that alternates between large and small requests seldom waits for the driver.
// Not thread-safe.
class SwapCredit {
 public:
  void earn() noexcept { credit_ = std::min(credit_ + 1, k_max); }
  void pay() noexcept { credit_ -= std::min(credit_, k_cost); }
  [[nodiscard]] bool suffices() const noexcept { return credit_ >= k_cost; }

 private:
  static constexpr std::uint32_t k_cost = 16;
  static constexpr std::uint32_t k_max = 16 * k_cost;

  std::uint32_t credit_ = k_max;
};

// Thread-safe: a spin lock guards the runs and the regions. It is not held during driver calls, and
// no other lock is taken while it is held. A long search releases it at intervals. Nothing
// here calls the driver, except the destructor; freeing a run never allocates.
class RegionHeap {
 public:
  using Index = RunHeap::Index;
  struct PageRun {
    std::byte* base = nullptr;
    Index first = RunHeap::k_none;
    Index count = 0;
    Ticket until;  // passes when nothing uses the run any more
  };
  static constexpr auto k_max_bytes = std::size_t{PoolPageTable::k_pages} * k_pool_page_bytes;

  // `source` provides all memory of the heap, and must outlive the heap.
  RegionHeap(RegionSource& source, QueueFences& fences) noexcept
      : source_{source}, fences_{fences} {}
  // Releases all regions. The caller ensures that nothing in them is in use.
  ~RegionHeap();
  RegionHeap(const RegionHeap&) = delete;
  RegionHeap& operator=(const RegionHeap&) = delete;

  // Call before anything else. OUT_OF_MEMORY if the host has no address space for the table.
  [[nodiscard]] Result<void> open();

  // The free runs from which a request may be cut. Where regions cannot move, an unused region is
  // spared from requests of less than half its size if it is larger than the region that would be
  // requested from the driver: a spared region can be released (`RegionTrim::release_unused`), but
  // not with a small block in it. Recorded table operations held 1.37 times the requested bytes
  // when no region was spared, and 1.17 times with sparing. `sparing` does not check whether work
  // still uses a region; `sparing_idle` spares only regions that no work uses; `any` spares none.
  enum class Cut { sparing, sparing_idle, any };
  // Allocates a run from free memory that is usable by the queue of `entry` (queue_fences.hpp). The
  // count is 0 if no run is long enough. `alignment` in bytes, a power of two.
  [[nodiscard]] PageRun allocate(Index count, std::size_t alignment, QueueFences::EntryIndex entry,
                                 Cut cut = Cut::sparing) noexcept;
  void deallocate(Index first, Ticket freed) noexcept;
  // Joins neighbouring runs that waited for different queues and no longer wait.
  void coalesce() noexcept;

  // A region outside of the heap. Nothing uses it once `until` has passed.
  struct Piece {
    Region region;
    Ticket until;
  };
  // Adds a row of adjacent regions as one free run, and empties `row`. OUT_OF_MEMORY, without
  // effect, if the heap would exceed `k_max_bytes`; throws std::bad_alloc, without effect.
  [[nodiscard]] Result<void> enter(std::vector<Piece>& row);
  // The error of a request that would exceed `k_max_bytes`.
  [[nodiscard]] static Error exceeds_max(std::size_t nbytes);

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
  [[nodiscard]] std::size_t free_bytes() noexcept;
  // The minimum of the free bytes since the previous call: memory that no request needed.
  [[nodiscard]] std::size_t min_free_bytes() noexcept;
  // The order number (`Region::since`) at which the page's region was obtained from an upstream
  // resource; 0 if the driver allocated the region.
  [[nodiscard]] std::uint64_t since(const PoolPage& page) const noexcept;
  // INTERNAL if records contradict one another.
  [[nodiscard]] Result<void> verify() noexcept;

 private:
  friend class UnusedRegions;
  friend class RegionCount;

  [[nodiscard]] bool is_spared(Index found, Index count, Cut cut) const noexcept
      ISTHMUS_REQUIRES(lock_);
  // These two release and reacquire the lock in between.
  [[nodiscard]] Index unite(Index wanted, QueueFences::EntryIndex entry) noexcept
      ISTHMUS_REQUIRES(lock_);
  void unite_all(QueueFences::EntryIndex entry) noexcept ISTHMUS_REQUIRES(lock_);
  // Poisons free pages if nothing uses them; returns whether it did.
  bool poison_if_unused(Index first, Index count, Ticket until) const noexcept
      ISTHMUS_REQUIRES(lock_);
  void poison_ended_runs() const noexcept ISTHMUS_REQUIRES(lock_);

  PoolPageTable* table_ = nullptr;
  RegionSource& source_;
  QueueFences& fences_;
  // On another cache line than `table_`, which every warm allocation and free reads.
  alignas(64) mutable SpinLock lock_;
  RunHeap runs_ ISTHMUS_GUARDED_BY(lock_){nullptr, nullptr, nullptr, fences_};
  // `QueueFences::passes` at the last `coalesce`.
  std::optional<std::uint64_t> coalesced_at_ ISTHMUS_GUARDED_BY(lock_);
  // The last search for usable neighbours that failed, so that it is not repeated in the same
  // state.
  struct {
    std::optional<RunHeap::State> state;
    Index wanted = 0;
    QueueFences::EntryIndex entry = QueueFences::k_no_queue;
  } failed_search_ ISTHMUS_GUARDED_BY(lock_);
  std::uint64_t min_free_ ISTHMUS_GUARDED_BY(lock_) = 0;  // in pages
  SwapCredit swap_credit_ ISTHMUS_GUARDED_BY(lock_);
  RegionList regions_ ISTHMUS_GUARDED_BY(lock_);
};

}  // namespace isthmus
