// SPDX-License-Identifier: Apache-2.0
#pragma once
// A row of adjacent chunks that is being assembled at new addresses, from free pieces and new
// memory. `RegionAssembler` decides what to move and to create.

#include <cstddef>
#include <utility>
#include <vector>

#include "memory/pool/deferred_regions.hpp"
#include "memory/pool/region_heap.hpp"

namespace isthmus {

// Used by one thread, which holds a growth turn. Calls the driver. The destructor releases memory
// that was not entered in the heap to the driver. That memory was free, so no data are lost.
class RegionAssembly {
 public:
  // Takes over `to_move`. `deferred` has room for twice as many entries.
  RegionAssembly(RegionSource& source, DeferredRegions& deferred,
                 std::vector<RegionHeap::Piece> to_move) noexcept
      : source_{source}, deferred_{deferred}, to_move_{std::move(to_move)} {}
  RegionAssembly(const RegionAssembly&) = delete;
  RegionAssembly& operator=(const RegionAssembly&) = delete;
  ~RegionAssembly();

  // Releases pieces that are too small to be worth a mapping. Each is a whole chunk by now, so no
  // mapping of it remains.
  void release_small_pieces(std::size_t needed) noexcept;
  // Reserves the addresses. Throws std::bad_alloc.
  [[nodiscard]] Result<void> reserve(std::size_t nbytes);
  // Moves the pieces to the reserved addresses. If a piece cannot move, nothing may be mapped after
  // it: it and all remaining pieces are released to the driver. May throw std::bad_alloc.
  void move();
  // Creates chunks up to `wanted` bytes in total. On failure, chunks beyond `needed` are released
  // again.
  [[nodiscard]] Result<void> create(std::size_t wanted, std::size_t needed);

  [[nodiscard]] std::size_t capacity() const noexcept { return reservation_->nbytes; }
  [[nodiscard]] bool is_move_blocked() const noexcept { return is_move_blocked_; }
  // The assembled chunks; emptied by `RegionHeap::enter`.
  [[nodiscard]] std::vector<RegionHeap::Piece>& row() noexcept { return row_; }
  [[nodiscard]] std::size_t filled() const noexcept { return reservation_->filled; }
  // Bytes of the pieces that have not moved yet.
  [[nodiscard]] std::size_t available_bytes() const noexcept;

 private:
  void drop(const RegionHeap::Piece& piece) noexcept { deferred_.drop(piece.region, piece.until); }
  void shrink_to(std::size_t needed) noexcept;

  RegionSource& source_;
  DeferredRegions& deferred_;
  std::vector<RegionHeap::Piece> to_move_;
  std::vector<RegionHeap::Piece> row_;
  Reservation* reservation_ = nullptr;
  std::size_t max_chunk_bytes_ = 0;
  bool is_move_blocked_ = false;
};

}  // namespace isthmus
