// SPDX-License-Identifier: Apache-2.0
#pragma once
// The page map: maps any address in pooled memory, inner ones included, to the record of its page.
//
// A page (`PoolPage`) is 64 KiB of address space, aligned to its size; regions of pools consist of
// whole pages. The map has two levels, indexed by bits of the address: the root is part of the map,
// and each GiB in use has a leaf of 256 KiB. Similar to the page maps of tcmalloc and snmalloc.
//
// A lookup takes two loads and no lock, and is allowed at any time and for any address. Only pools
// write to the map: before they allocate memory and after it was freed. Leaves are published with
// release and never freed; readers load them with acquire.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/expects.hpp"
#include "core/sizes.hpp"
#include "core/status.hpp"

namespace isthmus {

class Queue;

struct PoolPage;
struct Slab;
inline constexpr unsigned k_pool_page_bits = 16;
inline constexpr std::size_t k_pool_page_bytes = std::size_t{1} << k_pool_page_bits;

// The pages of a request. 2**48 for 0 bytes.
[[nodiscard]] constexpr std::size_t pool_pages_for(std::size_t nbytes) noexcept {
  return (nbytes - 1) / k_pool_page_bytes + 1;
}

// The entry of a page: its record and, if the page is in a slab, the data that a free and a lookup
// need. So these need not read the record, which would take another cache line and a load that
// depends on this one.
//
// States of `word_`: 0 (memory of no pool), a record, or a record with a size class and `k_is_bare`
// (slab pages in which no block begins that has an allocation record). The slab is stored before
// the word is stored with release, and the word is loaded with acquire, so a reader that sees
// `k_is_bare` also sees the slab.
class MapEntry {
 public:
  // The word as one load read it, so its parts are consistent.
  class Seen {
   public:
    explicit constexpr Seen(std::uint64_t word) noexcept : word_{word} {}
    // Null for memory of no pool.
    [[nodiscard]] PoolPage* record() const noexcept {
      return reinterpret_cast<PoolPage*>(word_ & k_record);
    }
    // Whether the page is in a slab and no block that begins in it has an allocation record.
    [[nodiscard]] bool is_bare() const noexcept { return (word_ & k_is_bare) != 0; }
    // Whether the page is bare and its record lies in the `count` bytes from `table` on.
    // `table` is aligned to `count`.
    [[nodiscard]] bool is_bare_of(const void* table, std::size_t count) const noexcept {
      ISTHMUS_EXPECTS(is_power_of_two(count) && address(table) % count == 0, table, count);
      return (word_ & (k_is_bare | (k_record & ~(count - 1)))) == (k_is_bare | address(table));
    }
    [[nodiscard]] unsigned size_class() const noexcept {
      ISTHMUS_EXPECTS(is_bare());
      return static_cast<unsigned>(word_ >> k_class_shift) & k_class_mask;
    }

   private:
    std::uint64_t word_;
  };

  [[nodiscard]] Seen load() const noexcept { return Seen{word_.load(std::memory_order_acquire)}; }
  // The slab that the page belongs to, or belonged to last. Slab records are never unmapped. Call
  // it only after `load` has returned a bare entry.
  [[nodiscard]] Slab& last_slab() const noexcept {
    auto* const last = last_slab_.load(std::memory_order_relaxed);
    ISTHMUS_EXPECTS(last != nullptr);
    return *last;
  }

 private:
  friend class PageMap;
  static constexpr unsigned k_class_shift = 48;
  static constexpr unsigned k_class_mask = 0x7F;
  static constexpr std::uint64_t k_record = (std::uint64_t{1} << k_class_shift) - 1;
  static constexpr std::uint64_t k_is_bare = std::uint64_t{1} << 63;

  void set(PoolPage* record) noexcept { word_.store(address(record), std::memory_order_release); }
  void set_slab(Slab& owner, unsigned size_class) noexcept {
    last_slab_.store(&owner, std::memory_order_relaxed);
    word_.store(address(load().record()) | std::uint64_t{size_class} << k_class_shift | k_is_bare,
                std::memory_order_release);
  }

  std::atomic<std::uint64_t> word_{0};
  std::atomic<Slab*> last_slab_{nullptr};
};
static_assert(sizeof(MapEntry) == 16, "0.024 % of the memory it describes");

class PageMap {
 public:
  [[nodiscard]] const MapEntry& at(const void* pointer) const noexcept {
    const auto number = address(pointer) >> k_pool_page_bits;
    if (number >> (k_leaf_bits + k_root_bits) != 0) [[unlikely]] {
      return k_empty_entry;
    }
    const auto* leaf = root_[number >> k_leaf_bits].load(std::memory_order_acquire);
    return leaf == nullptr ? k_empty_entry : (*leaf)[number & (k_leaf_pages - 1)];
  }
  // Null for memory of no pool.
  [[nodiscard]] PoolPage* find(const void* pointer) const noexcept {
    return at(pointer).load().record();
  }

  // Allocates the leaves for `count` pages from `begin` on. OUT_OF_MEMORY if the host has no memory
  // for a leaf; UNSUPPORTED for addresses that the map does not cover.
  [[nodiscard]] Result<void> prepare(const void* begin, std::size_t count);
  // Adds prepared pages, whose records are consecutive, from `first` on.
  void enter(const void* begin, std::size_t count, PoolPage* first) noexcept;
  void remove(const void* begin, std::size_t count) noexcept;

  // For pages in the map.
  void set_slab(const void* begin, std::size_t count, Slab& owner, unsigned size_class) noexcept;
  void clear_slab(const void* begin, std::size_t count) noexcept;
  // Frees a block of a pool through its allocation record, after the work on `after`. `block` is
  // the start of the block. Returns nothing if it has no record.
  using FreeRecorded = std::optional<Result<void>> (*)(const void* block, void* pointer,
                                                       Queue* after) noexcept;
  // Marks that the live block or page run that begins at `pointer` has an allocation record,
  // through which `function` frees it. All calls pass the same function. Does nothing for memory of
  // no pool.
  void note_record(const void* pointer, FreeRecorded function) noexcept;
  // The function passed to `note_record`. Call it only after `PoolPage::is_recorded` was true for a
  // page.
  [[nodiscard]] FreeRecorded free_recorded() const noexcept {
    const auto function = free_recorded_.load(std::memory_order_relaxed);
    ISTHMUS_EXPECTS(function != nullptr);
    return function;
  }

 private:
  static constexpr unsigned k_leaf_bits = 14;
  static constexpr unsigned k_root_bits = k_address_bits - k_pool_page_bits - k_leaf_bits;
  static constexpr std::size_t k_leaf_pages = std::size_t{1} << k_leaf_bits;
  using Leaf = std::array<MapEntry, k_leaf_pages>;
  static const MapEntry k_empty_entry;

  [[nodiscard]] Leaf* leaf_for(std::size_t number);
  // Calls visit(entry, index) for every page; all are prepared.
  template <class Visit>
  void visit(const void* begin, std::size_t count, Visit&& visit) noexcept;

  // In .bss, so only OS pages that are touched take memory.
  std::array<std::atomic<Leaf*>, std::size_t{1} << k_root_bits> root_{};
  std::atomic<FreeRecorded> free_recorded_{nullptr};
};

// The page map of the process. Never destroyed.
extern constinit PageMap process_page_map;

}  // namespace isthmus
