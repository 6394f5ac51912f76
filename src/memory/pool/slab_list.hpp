// SPDX-License-Identifier: Apache-2.0
#pragma once
// The slabs of one size class that hold blocks for allocation. Blocks are taken first from the
// fullest slabs (those with the fewest free blocks), so that other slabs become empty and can be
// released.

#include <array>
#include <span>

#include "memory/pool/free_poison.hpp"
#include "memory/pool/slab.hpp"

namespace isthmus {

// Blocks taken for a request.
struct TakenBlocks {
  std::size_t count = 0;
  // Bit i is set if block i, of the first 64, was freed in the order of another queue than the
  // request's (`is_from_other_queue`).
  std::uint64_t from_other_queue = 0;

  [[nodiscard]] static constexpr std::uint64_t bits(std::size_t first, std::size_t count) noexcept {
    const auto all = count < 64 ? (std::uint64_t{1} << count) - 1 : ~std::uint64_t{0};
    return first < 64 ? all << first : 0;
  }
};

// Not thread-safe: guarded by the lock of the class. Nothing here allocates or fails.
class SlabList {
 public:
  SlabList() noexcept = default;
  explicit SlabList(QueueFences& fences, FreePoison poison = {}) noexcept
      : fences_{&fences}, poison_{poison} {}

  // Adds a new slab, and takes blocks of it for the thread that created it. Returns the number of
  // blocks taken.
  [[nodiscard]] std::size_t add(Slab& slab, std::span<void*> out) noexcept;
  // Takes blocks that are usable by the queue of `entry` from the fullest slabs. Examines only a
  // few waiting slabs.
  [[nodiscard]] TakenBlocks take(std::span<void*> out, QueueFences::EntryIndex entry) noexcept;
  // Whether `take` would return any block.
  [[nodiscard]] bool has(QueueFences::EntryIndex entry) const noexcept;
  // Returns a block to its slab. Returns the slab, removed from the list, if it now holds all its
  // blocks; else null.
  [[nodiscard]] Slab* return_block(Slab& slab, void* block, Ticket freed) noexcept;
  // Removes and returns a slab that holds all its blocks because none was taken; null if there is
  // none.
  [[nodiscard]] Slab* take_unused_slab() noexcept;
  // A slab whose record contradicts its list or the marks of its blocks; null if there is none.
  [[nodiscard]] const Slab* find_damaged() const noexcept;

 private:
  // Four lists, one for each quarter of the range of the share of free blocks, and then one for
  // slabs whose free blocks all wait for their tickets.
  static constexpr std::size_t k_grades = 4;
  static constexpr std::size_t k_waiting = k_grades;
  static constexpr std::size_t k_unlisted = k_grades + 1;
  static constexpr int k_max_examined = 8;  // waiting slabs

  [[nodiscard]] static std::size_t list_of(const Slab& slab) noexcept {
    if (slab.free_count == 0) {
      return slab.waiting == 0 ? k_unlisted : k_waiting;
    }
    return std::min<std::size_t>(k_grades - 1,
                                 std::size_t{slab.free_count} * k_grades / slab.blocks);
  }
  void link(Slab& slab, std::size_t list) noexcept;
  void unlink(Slab& slab, std::size_t list) noexcept;
  void move(Slab& slab, std::size_t old_list) noexcept;
  void poison_waiting(Slab& slab) const noexcept;
  void free_waiting(Slab& slab) const noexcept;
  [[nodiscard]] TakenBlocks take_waiting(std::span<void*> out,
                                         QueueFences::EntryIndex entry) noexcept;

  QueueFences* fences_ = nullptr;
  FreePoison poison_;
  std::array<Slab*, k_grades + 1> first_{};
  Slab* last_waiting_ = nullptr;
};

}  // namespace isthmus
