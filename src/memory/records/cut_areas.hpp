// SPDX-License-Identifier: Apache-2.0
#pragma once
// A table of the areas of memory that resources sub-allocate, searched by address. Thread-safe.
//
// If the upstream of such a resource also sub-allocates, the resource's area lies inside an area of
// the upstream. Each area is one level deeper than the area around it. A look-up takes a shared
// lock and searches each level. It is needed only for memory that has no record, or whose record is
// marked as divided (`Allocation::is_divided`).
//
// Lock order: the table's lock, then the locks of the resource that owns the area. That resource
// must hold none of its locks when it adds or removes an area.

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/mutex.hpp"
#include "core/thread_safety.hpp"
#include "memory/base/cut_block.hpp"
#include "memory/records/allocation.hpp"

namespace isthmus {

class CutAreas {
 public:
  struct Area {
    std::byte* base = nullptr;
    std::size_t nbytes = 0;
    MemoryResource* resource = nullptr;
    // The block, for an area that has only one. Otherwise the resource is queried (`block_at`).
    std::optional<CutBlock> sole_block;
    // The area lies in a pool's block, and contains no regions of a pool. Set by `add`.
    bool is_above_pool = false;
    // A number from core/order.hpp, set by `add`. Block records of a tracking resource have greater
    // numbers if they describe blocks in the area, and smaller ones if they describe the memory
    // around it.
    std::uint64_t since = 0;
  };

 private:
  using Level = std::map<std::uintptr_t, Area>;

 public:
  // Identifies an area in the table. Copies identify the same area; only one of them may remove it.
  struct Entry {
    std::size_t depth = 0;
    Level::iterator position;
  };
  // An area that was extracted from the table. Reinserting it does not allocate.
  struct ExtractedArea {
    std::size_t depth = 0;
    Level::node_type node;
  };

  // Until the area is removed, the resource exists and the memory belongs to it. Throws
  // std::bad_alloc; the table is then unchanged.
  [[nodiscard]] Entry add(Area area);
  [[nodiscard]] ExtractedArea extract(const Entry& entry) noexcept;
  [[nodiscard]] Entry reinsert(ExtractedArea extracted) noexcept;
  void remove(const Entry& entry) noexcept { static_cast<void>(extract(entry)); }
  // Marks the only block of an area (`sole_block`) as no longer live.
  void end_block(const Entry& entry) noexcept;

  [[nodiscard]] bool is_empty() const noexcept {
    return count_.load(std::memory_order_relaxed) == 0;
  }

  struct Found {
    MemoryResource* resource = nullptr;  // borrowed from the owner of the memory
    CutBlock block;                      // not live: the address is in no allocated block
    std::uint64_t since = 0;             // that of the area
  };
  // Finds the innermost area that contains `pointer`, and the block there. Returns nothing if there
  // is no such area. `above_pool`: considers only areas that lie in a pool's block, for an address
  // in the page map.
  [[nodiscard]] std::optional<Found> find(const void* pointer, bool above_pool) noexcept;
  // As `find`, but returns a reference to the resource; null if the last reference to it was
  // dropped.
  [[nodiscard]] Ref<MemoryResource> resource_at(const void* pointer, bool above_pool) noexcept;
  // Whether `pointer` lies in an area of `resource` and, if so, whether another area inside that
  // one contains it too.
  enum class Nesting { outside, innermost, enclosing };
  [[nodiscard]] Nesting nesting_of(const void* pointer, const MemoryResource& resource,
                                   bool above_pool) noexcept;

 private:
  [[nodiscard]] const Area* innermost(const void* pointer, bool above_pool) const noexcept
      ISTHMUS_REQUIRES_SHARED(lock_);
  [[nodiscard]] static const Area* in_level(const Level& level, const void* pointer) noexcept;

  SharedMutex lock_;
  std::vector<Level> levels_ ISTHMUS_GUARDED_BY(lock_);  // outer areas first
  std::atomic<std::size_t> count_{0};
};

// The table of the process; never destroyed.
[[nodiscard]] CutAreas& process_cut_areas() noexcept;

// A block of upstream memory that a resource sub-allocates: its allocation record and its area.
// Destroyed while none of the resource's locks is held.
class CutChunk {
 public:
  CutChunk() noexcept = default;
  // Throws std::bad_alloc; the memory is then released.
  CutChunk(Ref<Allocation> memory, MemoryResource& resource);
  CutChunk(CutChunk&& other) noexcept : memory_{std::move(other.memory_)}, area_{other.area_} {}
  CutChunk& operator=(CutChunk&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(area_, other.area_);
    return *this;
  }
  ~CutChunk();

  [[nodiscard]] Allocation* operator->() const noexcept { return memory_.get(); }
  [[nodiscard]] Allocation& operator*() const noexcept { return *memory_; }
  // Leaves the memory allocated for the rest of the process, since its uses cannot be determined.
  void leak() noexcept;

 private:
  void remove_area() noexcept;

  Ref<Allocation> memory_;
  CutAreas::Entry area_;
};

}  // namespace isthmus
