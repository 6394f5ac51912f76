// SPDX-License-Identifier: Apache-2.0
#pragma once
// The areas of memory that resources cut into blocks, found by address. Thread-safe.
//
// The upstream of such a resource may be another one, whose block is then an area itself. So areas
// nest, and each is one level deeper than the area around it. A look-up takes a shared lock and
// searches each level. It is needed only for memory whose record says that other allocations lie in
// it, or that has no record.
//
// Lock order: this table's lock, then those of the cutting resource. The resource must hold none of
// its locks when it adds or removes an area.

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "memory/allocation.hpp"
#include "memory/cut_block.hpp"

namespace isthmus {

class CutAreas {
 public:
  struct Area {
    std::byte* base = nullptr;
    std::size_t nbytes = 0;
    MemoryResource* resource = nullptr;
    // The block of an area that has only one. Otherwise the resource is queried.
    std::optional<CutBlock> sole_block;
    // The area lies in a pool's block, and contains no pool's regions. Set by `add`.
    bool is_above_pool = false;
    // A number from core/order.hpp. Of the notes about an address here, those about blocks in the
    // area have greater numbers and those about the memory around it have smaller ones. Set by
    // `add`.
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
  // An area that was extracted; reinserting it needs no memory.
  struct Taken {
    std::size_t depth = 0;
    Level::node_type node;
  };

  // Precondition: the area belongs to the resource until it is removed, and the resource lives as
  // long. Throws std::bad_alloc; the table is then unchanged.
  [[nodiscard]] Entry add(Area area);
  [[nodiscard]] Taken extract(const Entry& entry) noexcept;
  [[nodiscard]] Entry reinsert(Taken taken) noexcept;
  void remove(const Entry& entry) noexcept { static_cast<void>(extract(entry)); }
  // The only block of such an area is no longer live.
  void end_block(const Entry& entry) noexcept;

  [[nodiscard]] bool is_empty() const noexcept {
    return count_.load(std::memory_order_relaxed) == 0;
  }

  struct Found {
    MemoryResource* resource = nullptr;  // borrowed from the owner of the memory
    CutBlock block;                      // not live: the address was not handed out
    std::uint64_t since = 0;             // the area's
  };
  // Looks in the innermost area that holds `pointer`. Returns nothing if it lies in no area.
  // `above_pool`: consider only areas that lie in a pool's block, for an address that the page map
  // knows.
  [[nodiscard]] std::optional<Found> find(const void* pointer, bool above_pool) noexcept;
  // As `find`, but returns a reference to the resource; null if the last reference to it was
  // dropped.
  [[nodiscard]] Ref<MemoryResource> resource_at(const void* pointer, bool above_pool) noexcept;
  // Whether `pointer` lies in an area of `resource` and, if so, whether another area inside that
  // one holds it too.
  enum class Place { outside, innermost, below_another };
  [[nodiscard]] Place position_of(const void* pointer, const MemoryResource& resource,
                                  bool in_pool) noexcept;

 private:
  // Precondition of these: the lock is held.
  [[nodiscard]] const Area* innermost(const void* pointer, bool above_pool) const noexcept;
  [[nodiscard]] static const Area* in_level(const Level& level, const void* pointer) noexcept;

  std::shared_mutex lock_;
  std::vector<Level> levels_;  // outer areas first
  std::atomic<std::size_t> count_{0};
};

// The table of the process; never destroyed.
[[nodiscard]] CutAreas& process_cut_areas() noexcept;

// A block of upstream memory that a resource cuts: its allocation record and its area. Precondition
// of the destructor: none of the resource's locks is held.
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
  // Leaves the memory allocated for the rest of the process, as it is unknown what uses it.
  void leak() noexcept;

 private:
  void remove_area() noexcept;

  Ref<Allocation> memory_;
  CutAreas::Entry area_;
};

}  // namespace isthmus
