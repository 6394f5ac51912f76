// SPDX-License-Identifier: Apache-2.0
#pragma once
// Notes of live blocks, found by address without a lock or a search, whatever their number.
// Thread-safe.
//
// Cells are aligned pieces of the address space. Two blocks that are at least as large as a cell
// never begin in the same cell. So for each of several sizes of cells, each four times the one
// before, there is a sparse array of notes over all addresses, and the note of a block is that of
// the largest cell that is not larger than the block. This takes 64 to 256 bytes per block, or less
// for large ones. A block below 256 bytes that does not begin with a smallest cell has its note in
// a map with locks. Only the owner of a block writes its note; other threads may read it at any
// time.

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "core/sizes.hpp"
#include "memory/adaptors/pointer_table.hpp"

namespace isthmus {

struct BlockRecord {
  const void* pointer = nullptr;
  std::size_t nbytes = 0;    // requested
  std::uintptr_t queue = 0;  // its key
  std::uint64_t order = 0;   // grows with time
  std::uint64_t thread = 0;  // the system's number
  const char* tag = nullptr;
  const void* stack = nullptr;
};

// "3 MiB (3145728 bytes) in 2 blocks".
[[nodiscard]] std::string describe_blocks(std::size_t nbytes, std::size_t count);

class BlockTable {
 public:
  BlockTable();
  BlockTable(const BlockTable&) = delete;
  BlockTable& operator=(const BlockTable&) = delete;
  ~BlockTable();

  // Throws std::bad_alloc, without effect.
  void insert(const BlockRecord& note) {
    if (auto* cell = cell_for(note.pointer, note.nbytes)) [[likely]] {
      cell->store(note);
    } else {
      overflow_.insert(note.pointer, note);
    }
  }
  // Reinserts a note that was extracted, unless there is another one.
  void restore(const BlockRecord& note) noexcept;
  // Removes the note; false if there is none. Fast if `nbytes` is the size of the allocation.
  [[nodiscard]] bool extract(const void* pointer, std::size_t nbytes, BlockRecord& out) noexcept {
    auto* cell = find_cell(pointer, nbytes);
    if (cell != nullptr && cell->try_take(pointer, out)) [[likely]] {
      return true;
    }
    return extract_slow(pointer, out);
  }
  // Reads the note of the block that begins at `pointer`; false if there is none.
  [[nodiscard]] bool find(const void* pointer, BlockRecord& out) noexcept;
  // All notes; may include some of the concurrent changes. Throws std::bad_alloc.
  [[nodiscard]] std::vector<BlockRecord> all();

 private:
  // The note of one cell, in one cache line. Only the block's owner writes, so writes do not
  // overlap. `nbytes` is not 0 while there is a note: stored last, by release, it publishes the
  // other fields. `order` and `thread` together identify a note. They are stored first, before a
  // release fence, and read both before the other fields and after them, following an acquire
  // fence. So a reader that reads a later note in any of those fields sees that it has changed.
  class alignas(64) Cell {
   public:
    // Called only by the block's owner. May overwrite the note of a block that was freed elsewhere.
    void store(const BlockRecord& note) noexcept {
      if (nbytes_.load(k_relaxed) != 0) [[unlikely]] {
        nbytes_.store(0, k_relaxed);  // else a reader could take its fields for the new note's
        std::atomic_thread_fence(std::memory_order_release);
      }
      order_.store(note.order, k_relaxed);
      thread_.store(note.thread, k_relaxed);
      std::atomic_thread_fence(std::memory_order_release);
      pointer_.store(note.pointer, k_relaxed);
      queue_.store(note.queue, k_relaxed);
      tag_.store(note.tag, k_relaxed);
      stack_.store(note.stack, k_relaxed);
      nbytes_.store(note.nbytes, std::memory_order_release);
    }
    // If two threads free a block at the same moment both may take its note: upstream detects the
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
    // False if there is none, or it is changing.
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
    std::atomic<std::size_t> nbytes_;  // 0: there is no note
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

  // In sparse pages. `used_pages` has a bit for each page of cells that was ever written to.
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
  // Of the cells for blocks of `nbytes` bytes. Pre: nbytes > 0.
  [[nodiscard]] static unsigned size_for(std::size_t nbytes) noexcept {
    const auto bits = static_cast<unsigned>(std::bit_width(nbytes)) - 1;
    const auto size = bits < k_smallest_bits ? 0 : (bits - k_smallest_bits) / k_step_bits;
    return size < k_sizes ? size : k_sizes - 1;
  }
  // Several blocks may lie in a smallest cell; the one that begins with it has it.
  [[nodiscard]] static bool has_cell(const void* pointer, unsigned size) noexcept {
    return address(pointer) >> k_address_bits == 0 &&
           (size != 0 || address(pointer) % (std::size_t{1} << k_smallest_bits) == 0);
  }
  [[nodiscard]] Cell* cell_in(unsigned size, const void* pointer) const noexcept {
    const auto at = address(pointer) >> cell_bits(size);
    if (address(pointer) >> k_address_bits != 0) [[unlikely]] {
      return nullptr;
    }
    auto* leaf = roots_[size][at >> k_leaf_bits].load(std::memory_order_acquire);
    return leaf == nullptr ? nullptr : &leaf->cells[at & (k_leaf_cells - 1)];
  }
  [[nodiscard]] Cell* find_cell(const void* pointer, std::size_t nbytes) const noexcept {
    return nbytes == 0 ? nullptr : cell_in(size_for(nbytes), pointer);
  }
  // Null if the block has none.
  [[nodiscard]] Cell* cell_for(const void* pointer, std::size_t nbytes) {
    const auto size = size_for(nbytes);
    const auto at = address(pointer) >> cell_bits(size);
    if (!has_cell(pointer, size)) [[unlikely]] {
      return nullptr;
    }
    auto* leaf = roots_[size][at >> k_leaf_bits].load(std::memory_order_acquire);
    if (leaf == nullptr) [[unlikely]] {
      leaf = add_leaf(roots_[size][at >> k_leaf_bits]);
    }
    const auto index = at & (k_leaf_cells - 1);
    const auto page = index >> k_page_cells_bits;
    auto& word = leaf->used_pages[page >> 6];
    const auto bit = std::uint64_t{1} << (page & 63);
    if ((word.load(std::memory_order_relaxed) & bit) == 0) [[unlikely]] {
      word.fetch_or(bit, std::memory_order_release);
    }
    return &leaf->cells[index];
  }
  [[nodiscard]] Leaf* add_leaf(Root& at);
  [[nodiscard]] bool extract_slow(const void* pointer, BlockRecord& out) noexcept;
  static void collect(const Leaf& leaf, std::vector<BlockRecord>& out);

  std::array<Root*, k_sizes> roots_{};
  Root* all_roots_ = nullptr;
  std::mutex lock_;  // guards adding leaves
  std::vector<Leaf*> leaves_;
  PointerTable<BlockRecord> overflow_;
};

}  // namespace isthmus
