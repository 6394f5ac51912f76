// SPDX-License-Identifier: Apache-2.0
#pragma once
// Obtains the regions of a pool: as driver allocations, as chunks that can be remapped, or from an
// upstream resource.

#include <atomic>
#include <memory>

#include "core/expects.hpp"
#include "memory/base/budget.hpp"
#include "memory/base/driver_counts.hpp"
#include "memory/base/live_counts.hpp"
#include "memory/base/memory_resource.hpp"
#include "memory/base/pool_upstream.hpp"
#include "memory/pool/free_poison.hpp"
#include "memory/pool/page_map.hpp"
#include "memory/pool/pool_page_table.hpp"
#include "recorder/observers.hpp"

namespace isthmus {

// An address range in which chunks are mapped side by side. Where chunks divide, each chunk owns
// the addresses at which it is mapped; otherwise the whole range is released with its last user.
struct Reservation {
  std::byte* base;
  std::size_t nbytes;
  std::size_t filled = 0;               // bytes mapped, from the start
  std::atomic<std::uint32_t> users{1};  // its chunks, and the thread that fills it
};

// Whole pages (`PoolPage`) of driver memory that are released or moved as a unit; in a pool over
// another resource, an allocation of that resource.
struct Region {
  void* driver_pointer = nullptr;
  std::size_t driver_bytes = 0;
  std::byte* base = nullptr;
  PoolPageTable::Index count = 0;
  Reservation* reservation = nullptr;     // set if the chunk does not divide
  RefCounted* upstream_holder = nullptr;  // one reference to the holder of upstream's memory
  PoolPageTable::Index first = PoolPageTable::k_none;
  // Identifies a chunk, which may be mapped at several addresses; 0 if chunks divide.
  std::uint32_t chunk = 0;
  // An order number (core/order.hpp), if the memory is from upstream: blocks that the pool
  // allocates from it have greater numbers, upstream's own block has a smaller one.
  std::uint64_t since = 0;

  [[nodiscard]] std::size_t nbytes() const noexcept {
    return std::size_t{count} * k_pool_page_bytes;
  }
};

// Thread-safe. Functions that obtain, move or release memory may call the driver: call them with no
// spin lock held.
class RegionSource {
 public:
  struct Sizes {
    std::size_t growth_bytes;      // minimum per driver request; 0: see `growth_for`
    std::size_t soft_limit_bytes;  // beyond it, only the needed bytes are requested
    std::size_t limit_bytes;       // never exceeded
    std::size_t initial_bytes;     // requested on creation; not released for other requests
  };
  // `pool`: see `pool()`. `shared`: a budget shared with other sources; may
  // be null, as may `upstream`. `live` counts the driver's allocations; may be null.
  RegionSource(const void* pool, Context& context, Device& device, UsmKind kind, const Sizes& sizes,
               Ref<Budget> shared, std::shared_ptr<PoolUpstream> upstream, bool remaps,
               LiveCounts* live) noexcept;

  // Identifies the pool in memory events.
  [[nodiscard]] const void* pool() const noexcept { return pool_; }
  // Null: the driver.
  [[nodiscard]] PoolUpstream* upstream() const noexcept { return upstream_.get(); }
  // Whether its regions are chunks, which can be remapped.
  [[nodiscard]] bool moves() const noexcept { return chunks_ != nullptr; }
  // Chunk sizes are multiples of this many bytes.
  [[nodiscard]] std::size_t unit() const noexcept {
    ISTHMUS_EXPECTS(moves());
    return chunks_->granularity();
  }
  [[nodiscard]] bool divides() const noexcept { return moves() && chunks_->can_split(); }
  // Splits the first `count` pages off a chunk; `region` becomes the rest. Calls no driver.
  [[nodiscard]] Region split(Region& region, PoolPageTable::Index count) noexcept;
  // Bytes to request when `needed` bytes are needed.
  [[nodiscard]] std::size_t growth_for(std::size_t needed) const noexcept;

  // Allocates a region that cannot move. OUT_OF_MEMORY beyond the limit or the budget; otherwise
  // the driver's errors.
  [[nodiscard]] Result<Region> allocate(std::size_t nbytes);
  void deallocate(const Region& region) noexcept;

  // Where regions can move: one thread fills a reservation, from its
  // first byte on, and then releases it with `release_user`.
  [[nodiscard]] Result<Reservation*> reserve(std::size_t nbytes);
  // Drops one user. The last one releases the addresses.
  void release_user(Reservation& reservation) noexcept;
  // Creates a chunk. Errors as `allocate`.
  [[nodiscard]] Result<Region> create(Reservation& reservation, std::size_t nbytes);
  // Whether a chunk can move while work still uses it: later work, ordered after that, uses it at
  // the new address.
  [[nodiscard]] bool moves_in_order() const noexcept {
    return moves() && chunks_->keeps_old_mapping();
  }
  // Moves a chunk. Returns the old mapping, to be passed to `unmap_old` once nothing uses it. On
  // failure the chunk is not moved, and nothing more may be mapped in the reservation. Nothing uses
  // the chunk, unless `moves_in_order()`. May throw std::bad_alloc, without effect.
  [[nodiscard]] Result<Region> move(Region& region, Reservation& target);
  void unmap_old(const Region& old) noexcept;

  // OUT_OF_MEMORY if `nbytes` exceeds the limit or the whole budget.
  [[nodiscard]] Result<void> fits(std::size_t nbytes) const;
  // Advice for a refused request for `needed` bytes while `free` of the bytes held were free.
  [[nodiscard]] const char* remedy(std::size_t needed, std::size_t free) const noexcept;
  // A chunk that moves counts both as a map and as an unmap.
  [[nodiscard]] const DriverCounts& counts() const noexcept { return counts_; }
  [[nodiscard]] const Sizes& sizes() const noexcept { return sizes_; }
  [[nodiscard]] Budget* shared() const noexcept { return shared_.get(); }
  [[nodiscard]] const FreePoison& poison() const noexcept { return poison_; }

 private:
  // Bytes to request from the driver to obtain `needed`, with rounding and alignment.
  [[nodiscard]] std::size_t driver_bytes_for(std::size_t needed) const noexcept;
  [[nodiscard]] Result<void> claim(std::size_t nbytes);
  [[nodiscard]] Result<Region> allocate_memory(const AllocationRequest& request);
  void fill(Reservation& reservation, std::size_t nbytes) noexcept;
  void unclaim(std::size_t nbytes) noexcept;
  void observe_memory(MemoryEventKind kind, const void* pointer, std::size_t nbytes) const noexcept;

  const void* const pool_;
  Context& context_;
  Device& device_;
  const UsmKind kind_;
  const Sizes sizes_;
  const Ref<Budget> shared_;
  const std::shared_ptr<PoolUpstream> upstream_;
  ChunkSource* const chunks_;
  LiveCounts* const live_;
  const FreePoison poison_;
  DriverCounts counts_;
  std::atomic<std::uint32_t> last_chunk_{0};
};

}  // namespace isthmus
