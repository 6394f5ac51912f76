// SPDX-License-Identifier: Apache-2.0
#pragma once
// A table of the records of live blocks. A lookup by address needs no lock and no search, however
// many blocks there are. Thread-safe.
//
// The address space is divided into aligned cells of several sizes, each four times the previous
// one. For each size, a sparse array over all addresses has one record per cell. A block uses the
// largest cell size that does not exceed its own size. Two blocks that are at least as large as a
// cell never begin in the same cell, so each has its own record. The table takes 64 to 256 bytes
// per block, and less for large blocks. A block below 256 bytes that does not begin at the start of
// a smallest cell has its record in a map with locks. Only the owner of a block writes its record;
// other threads may read it at any time.

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/expects.hpp"
#include "core/mutex.hpp"
#include "core/sizes.hpp"
#include "core/thread_safety.hpp"
#include "memory/resources/pointer_table.hpp"

namespace isthmus {

struct BlockRecord {
  const void* pointer = nullptr;
  std::size_t nbytes = 0;    // as requested
  std::uintptr_t queue = 0;  // key of its queue
  std::uint64_t order = 0;   // increases with time
  std::uint64_t thread = 0;  // the operating system's id
  const char* tag = nullptr;
  const void* stack = nullptr;
};

class BlockTable {
 public:
  BlockTable();
  BlockTable(const BlockTable&) = delete;
  BlockTable& operator=(const BlockTable&) = delete;
  ~BlockTable();

  // Throws std::bad_alloc, without effect.
  void insert(const BlockRecord& record) {
    if (auto* cell = cell_for(record.pointer, record.nbytes)) [[likely]] {
      cell->store(record);
    } else {
      overflow_.insert(record.pointer, record);
    }
  }
  // Reinserts an extracted record, unless the block has another one by then. If there is no memory
  // for it, the record is lost.
  void restore(const BlockRecord& record) noexcept;
  // Removes the record and stores it in `out`; false if there is none. Fast if `nbytes` is the size
  // of the allocation.
  [[nodiscard]] bool extract(const void* pointer, std::size_t nbytes, BlockRecord& out) noexcept {
    auto* cell = find_cell(pointer, nbytes);
    if (cell != nullptr && cell->try_take(pointer, out)) [[likely]] {
      return true;
    }
    return extract_slow(pointer, out);
  }
  // Reads the record of the block that begins at `pointer`; false if there is none.
  [[nodiscard]] bool find(const void* pointer, BlockRecord& out) noexcept;
  // All records. Concurrent changes may be included or not. Throws std::bad_alloc.
  [[nodiscard]] std::vector<BlockRecord> all();

 private:
  // The record of one cell, in one cache line. Only the block's owner writes it, so writes do not
  // overlap. `nbytes_` is not 0 while there is a record; stored last, with release, it publishes
  // the other fields. `order_` and `thread_` together identify a record. A writer stores them
  // first, before a release fence. A reader loads them before the other fields and, following an
  // acquire fence, after them. So a reader that loads any field of a later record sees that they
  // have changed.
  class alignas(64) Cell {
   public:
    // Called only by the block's owner. May overwrite the record of an earlier block whose free was
    // not reported to this table.
    void store(const BlockRecord& record) noexcept {
      if (nbytes_.load(k_relaxed) != 0) [[unlikely]] {
        nbytes_.store(0, k_relaxed);  // else a reader could mix old and new fields
        std::atomic_thread_fence(std::memory_order_release);
      }
      order_.store(record.order, k_relaxed);
      thread_.store(record.thread, k_relaxed);
      std::atomic_thread_fence(std::memory_order_release);
      pointer_.store(record.pointer, k_relaxed);
      queue_.store(record.queue, k_relaxed);
      tag_.store(record.tag, k_relaxed);
      stack_.store(record.stack, k_relaxed);
      nbytes_.store(record.nbytes, std::memory_order_release);
    }
    // If two threads free a block concurrently, both may take its record; upstream detects the
    // double free.
    [[nodiscard]] bool try_take(const void* pointer, BlockRecord& out) noexcept {
      const auto nbytes = nbytes_.load(std::memory_order_acquire);
      if (nbytes == 0 || pointer_.load(k_relaxed) != pointer) {
        return false;
      }
      out = {pointer,
             nbytes,
             queue_.load(k_relaxed),
             order_.load(k_relaxed),
             thread_.load(k_relaxed),
             tag_.load(k_relaxed),
             stack_.load(k_relaxed)};
      nbytes_.store(0, std::memory_order_release);
      return true;
    }
    // False if there is no record, or if it is being changed.
    [[nodiscard]] bool try_read(BlockRecord& out) const noexcept {
      const auto order = order_.load(k_relaxed);
      const auto thread = thread_.load(k_relaxed);
      std::atomic_thread_fence(std::memory_order_acquire);
      out.nbytes = nbytes_.load(std::memory_order_acquire);
      out.pointer = pointer_.load(k_relaxed);
      out.queue = queue_.load(k_relaxed);
      out.tag = tag_.load(k_relaxed);
      out.stack = stack_.load(k_relaxed);
      std::atomic_thread_fence(std::memory_order_acquire);
      out.order = order_.load(k_relaxed);
      out.thread = thread_.load(k_relaxed);
      return out.nbytes != 0 && out.order == order && out.thread == thread &&
             nbytes_.load(k_relaxed) == out.nbytes;
    }

   private:
    static constexpr auto k_relaxed = std::memory_order_relaxed;
    std::atomic<std::size_t> nbytes_;  // 0: there is no record
    std::atomic<const void*> pointer_;
    std::atomic<std::uintptr_t> queue_;
    std::atomic<std::uint64_t> order_;
    std::atomic<std::uint64_t> thread_;
    std::atomic<const char*> tag_;
    std::atomic<const void*> stack_;
  };
  static_assert(sizeof(Cell) == 64);

  static constexpr unsigned k_leaf_bits = 20;       // cells in a leaf
  static constexpr unsigned k_page_cells_bits = 6;  // cells in a page
  static constexpr unsigned k_smallest_bits = 6;
  static constexpr unsigned k_step_bits = 2;
  static constexpr unsigned k_sizes = 8;  // of cells: 64 bytes to 1 MiB
  static constexpr std::size_t k_leaf_cells = std::size_t{1} << k_leaf_bits;
  static constexpr std::size_t k_words = k_leaf_cells >> k_page_cells_bits >> 6;

  // Lies in sparse pages. `used_pages` has a bit for each page of cells that was ever written to.
  struct Leaf {
    std::array<std::atomic<std::uint64_t>, k_words> used_pages;
    std::array<Cell, k_leaf_cells> cells;
  };
  using Root = std::atomic<Leaf*>;

  [[nodiscard]] static constexpr unsigned cell_bits(unsigned size) noexcept {
    return k_smallest_bits + k_step_bits * size;
  }
  [[nodiscard]] static constexpr std::size_t root_length(unsigned size) noexcept {
    return std::size_t{1} << (k_address_bits - cell_bits(size) - k_leaf_bits);
  }
  // The number of the cell size for blocks of `nbytes` bytes.
  [[nodiscard]] static unsigned size_for(std::size_t nbytes) noexcept {
    ISTHMUS_EXPECTS(nbytes > 0);
    const auto bits = static_cast<unsigned>(std::bit_width(nbytes)) - 1;
    const auto size = bits < k_smallest_bits ? 0 : (bits - k_smallest_bits) / k_step_bits;
    return size < k_sizes ? size : k_sizes - 1;
  }
  // A cell of the smallest size may contain several blocks. The cell belongs to the block that
  // begins at the cell's start.
  [[nodiscard]] static bool has_cell(const void* pointer, unsigned size) noexcept {
    return address(pointer) >> k_address_bits == 0 &&
           (size != 0 || address(pointer) % (std::size_t{1} << k_smallest_bits) == 0);
  }
  [[nodiscard]] Cell* cell_in(unsigned size, const void* pointer) const noexcept {
    const auto number = address(pointer) >> cell_bits(size);
    if (address(pointer) >> k_address_bits != 0) [[unlikely]] {
      return nullptr;
    }
    auto* leaf = roots_[size][number >> k_leaf_bits].load(std::memory_order_acquire);
    return leaf == nullptr ? nullptr : &leaf->cells[number & (k_leaf_cells - 1)];
  }
  [[nodiscard]] Cell* find_cell(const void* pointer, std::size_t nbytes) const noexcept {
    return nbytes == 0 ? nullptr : cell_in(size_for(nbytes), pointer);
  }
  // The cell of a block; null if the block has none. Adds the leaf if necessary, and throws
  // std::bad_alloc if it cannot.
  [[nodiscard]] Cell* cell_for(const void* pointer, std::size_t nbytes) {
    const auto size = size_for(nbytes);
    const auto number = address(pointer) >> cell_bits(size);
    if (!has_cell(pointer, size)) [[unlikely]] {
      return nullptr;
    }
    auto* leaf = roots_[size][number >> k_leaf_bits].load(std::memory_order_acquire);
    if (leaf == nullptr) [[unlikely]] {
      leaf = add_leaf(roots_[size][number >> k_leaf_bits]);
    }
    const auto index = number & (k_leaf_cells - 1);
    const auto page = index >> k_page_cells_bits;
    auto& word = leaf->used_pages[page >> 6];
    const auto bit = std::uint64_t{1} << (page & 63);
    if ((word.load(std::memory_order_relaxed) & bit) == 0) [[unlikely]] {
      word.fetch_or(bit, std::memory_order_release);
    }
    return &leaf->cells[index];
  }
  [[nodiscard]] Leaf* add_leaf(Root& root);
  [[nodiscard]] bool extract_slow(const void* pointer, BlockRecord& out) noexcept;
  static void collect(const Leaf& leaf, std::vector<BlockRecord>& out);

  std::array<Root*, k_sizes> roots_{};
  Root* all_roots_ = nullptr;
  Mutex lock_;  // held while a leaf is added
  std::vector<Leaf*> leaves_ ISTHMUS_GUARDED_BY(lock_);
  PointerTable<BlockRecord> overflow_;
};

}  // namespace isthmus
