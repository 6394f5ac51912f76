// SPDX-License-Identifier: Apache-2.0
// Growth of a region heap whose memory can move: free chunks are remapped side by side to new
// addresses, and new chunks are created after them.

#include <algorithm>
#include <new>
#include <numeric>

#include "core/sizes.hpp"
#include "memory/pool/region_heap.hpp"

namespace isthmus {
namespace {

// The size of a new chunk that cannot be split. One live block in it prevents the whole chunk from
// moving, but each chunk costs a mapping. So the size is a share of the request, within bounds.
// Measured with isthmus replay on a simulated device, for recorded training / table operations:
// - 8 MiB for all requests: held 1.015 / 1.085 times the requested bytes, with 70 / 122 maps and
//   unmaps in 1,000 operations;
// - 1/16 of the request: 1.007 / 1.068 times, with 116 / 152;
// - 2 MiB for all requests: 1.004 / 1.028 times, with 262 / 462.
constexpr std::size_t k_chunks = 16;
constexpr std::size_t k_min_chunk_bytes = std::size_t{2} << 20;
constexpr std::size_t k_max_chunk_bytes = std::size_t{8} << 20;

std::size_t chunk_bytes(std::size_t nbytes) noexcept {
  return std::clamp(round_up(nbytes / k_chunks, k_min_chunk_bytes), k_min_chunk_bytes,
                    k_max_chunk_bytes);
}

// The share of the request below which a free piece is not moved if the driver is called anyway:
// the memory is then part of the one new chunk, and is not split again. On recorded table
// operations 1/32 held 1.018 times the requested bytes with 47 maps and unmaps in 1,000 operations;
// without this rule, they held 1.023 times with 58.
constexpr std::size_t k_min_share = 32;

}  // namespace

// Assembles a row of adjacent chunks from free pieces and new memory. The destructor releases
// memory that was not entered in the heap to the driver. That memory was free, so no data are lost.
class RegionHeap::Assembly {
 public:
  Assembly(RegionHeap& heap, std::vector<Piece> to_move) noexcept
      : heap_{heap}, source_{heap.source_}, to_move_{std::move(to_move)} {}
  Assembly(const Assembly&) = delete;
  Assembly& operator=(const Assembly&) = delete;
  ~Assembly() {
    for (const auto& each : to_move_) {
      heap_.drop(each);
    }
    for (const auto& each : row_) {
      heap_.drop(each);
    }
    if (reservation_ != nullptr) {
      source_.release_user(*reservation_);
    }
  }

  // Releases pieces that are too small to be worth a mapping. Each is a whole chunk by now, so no
  // mapping of it remains.
  void release_small_pieces(std::size_t needed) noexcept {
    const auto share = available_bytes() < needed ? needed / k_min_share : 0;
    const auto min_bytes = std::max(k_min_part * k_pool_page_bytes, share);
    std::erase_if(to_move_, [&](const Piece& each) {
      const bool is_small = source_.divides() && each.region.nbytes() < min_bytes;
      if (is_small) {
        heap_.drop(each);
      }
      return is_small;
    });
  }
  [[nodiscard]] Result<void> reserve(std::size_t nbytes) {
    max_chunk_bytes_ = source_.divides() ? nbytes : chunk_bytes(nbytes);
    row_.reserve(to_move_.size() + nbytes / max_chunk_bytes_ + 2);
    auto reservation = source_.reserve(nbytes);
    ISTHMUS_TRY(reservation);
    reservation_ = *reservation;
    return {};
  }
  // If a piece cannot move, nothing may be mapped after it: it and all remaining pieces are
  // released to the driver.
  void move() {
    for (; !to_move_.empty(); to_move_.pop_back()) {
      auto& each = to_move_.back();
      auto old = is_move_blocked_ ? Result<Region>{Error::no_memory()}
                                  : source_.move(each.region, *reservation_);
      if (old) {
        row_.push_back(each);
        heap_.drop({*old, each.until, true});
      } else {
        is_move_blocked_ = true;
        heap_.drop(each);
      }
    }
  }
  // Creates chunks up to `wanted` bytes in total. On failure, chunks beyond `needed` are released
  // again.
  [[nodiscard]] Result<void> create(std::size_t wanted, std::size_t needed) {
    while (filled() < wanted) {
      auto region = source_.create(*reservation_, std::min(wanted - filled(), max_chunk_bytes_));
      if (!region) {
        shrink_to(needed);
        return filled() >= needed ? Result<void>{} : Result<void>{region.take_error()};
      }
      row_.push_back({*region, {}});
    }
    return {};
  }
  [[nodiscard]] std::size_t capacity() const noexcept { return reservation_->nbytes; }
  [[nodiscard]] bool is_move_blocked() const noexcept { return is_move_blocked_; }
  [[nodiscard]] std::vector<Piece>& row() noexcept { return row_; }
  [[nodiscard]] std::size_t filled() const noexcept { return reservation_->filled; }
  [[nodiscard]] std::size_t available_bytes() const noexcept {
    return std::accumulate(
        to_move_.begin(), to_move_.end(), std::size_t{0},
        [](std::size_t sum, const Piece& each) { return sum + each.region.nbytes(); });
  }

 private:
  void shrink_to(std::size_t needed) noexcept {
    while (!row_.empty() && filled() - row_.back().region.nbytes() >= needed) {
      reservation_->filled -= row_.back().region.nbytes();
      heap_.drop(row_.back());
      row_.pop_back();
    }
  }

  RegionHeap& heap_;
  RegionSource& source_;
  std::vector<Piece> to_move_;
  std::vector<Piece> row_;
  Reservation* reservation_ = nullptr;
  std::size_t max_chunk_bytes_ = 0;
  bool is_move_blocked_ = false;
};

// A moved chunk also remains mapped at its old address until nothing uses it there. The driver
// frees its memory only when that mapping is released.
bool RegionHeap::has_old_mapping(const Region& region) const noexcept {
  return std::any_of(deferred_.begin(), deferred_.end(), [&](const Piece& each) {
    return each.is_old_mapping && each.region.chunk == region.chunk;
  });
}

bool RegionHeap::is_releasable(const Piece& piece) const noexcept {
  return slots_.passed(piece.until) && (piece.is_old_mapping || !has_old_mapping(piece.region));
}

void RegionHeap::release_now(const Piece& piece) noexcept {
  piece.is_old_mapping ? source_.unmap_old(piece.region) : source_.deallocate(piece.region);
}

void RegionHeap::drop(const Piece& piece) noexcept {
  if (is_releasable(piece)) {
    release_now(piece);
  } else {
    deferred_.push_back(piece);
    deferred_bytes_.fetch_add(piece.is_old_mapping ? 0 : piece.region.driver_bytes,
                              std::memory_order_relaxed);
  }
}

// Releases old mappings first, since chunks cannot be released before their old mappings.
std::size_t RegionHeap::drop_ended() noexcept {
  const auto deferred_before = deferred_bytes();
  const auto drop_ended_of = [this](bool are_old_mappings) {
    const auto released =
        std::partition(deferred_.begin(), deferred_.end(), [&](const Piece& each) {
          return each.is_old_mapping != are_old_mappings || !is_releasable(each);
        });
    std::for_each(released, deferred_.end(), [this](const Piece& each) {
      release_now(each);
      deferred_bytes_.fetch_sub(each.is_old_mapping ? 0 : each.region.driver_bytes,
                                std::memory_order_relaxed);
    });
    deferred_.erase(released, deferred_.end());
  };
  drop_ended_of(true);
  drop_ended_of(false);
  return deferred_before - deferred_bytes();
}

// Chooses the pieces to move: one piece that suffices alone; otherwise the longest pieces first, so
// that few are moved, and as the last one the shortest that suffices. The surplus remains attached
// to the run: if it were split off, it would be one more piece to move next time.
std::vector<RegionHeap::Piece> RegionHeap::remove_to_move(std::size_t needed,
                                                          QueueSlots::EntryIndex entry) {
  std::unique_lock hold{lock_};
  // Joins neighbouring runs first. Otherwise a chunk that consists of two free runs, one of them
  // used by work of this queue, would count as in use: recorded training whose host runs ahead held
  // 1.027 times the requested bytes without this, 1.015 with it.
  if (source_.moves_in_order()) {
    unite_all(entry, hold);
  }
  auto all = find_unused(entry);
  std::stable_sort(all.begin(), all.end(),
                   [](const Unused& a, const Unused& b) { return a.count > b.count; });
  std::vector<Unused> chosen;
  chosen.reserve(all.size());
  const auto wanted = static_cast<Index>(round_up(needed, k_pool_page_bytes) / k_pool_page_bytes);
  auto missing = wanted;
  const Unused* last = nullptr;
  for (const auto& each : all) {
    if (each.count <= missing) {
      missing -= each.count;
      chosen.push_back(each);
    } else {
      last = &each;
    }
  }
  if (last != nullptr && (missing != 0 || last->count >= wanted)) {
    if (last->count >= wanted) {
      chosen.clear();
    }
    chosen.push_back(*last);
  }
  std::sort(chosen.begin(), chosen.end(),
            [](const Unused& a, const Unused& b) { return a.first < b.first; });
  std::vector<Piece> pieces(chosen.size());
  deferred_.reserve(deferred_.size() + 2 * chosen.size());  // each, and the mapping that it leaves
  const auto regions = remove_unused(chosen);
  std::transform(
      regions.begin(), regions.end(), chosen.begin(), pieces.begin(),
      [](const Region& region, const Unused& unused) { return Piece{region, unused.until}; });
  return pieces;
}

// Requests from the driver only the bytes that the moved pieces lack. Memory that was assembled
// before an error becomes ordinary free memory. False if a failed move left less than is needed.
Result<bool> RegionHeap::assemble_from(std::vector<Piece> to_move, std::size_t needed,
                                       std::size_t wanted) {
  Assembly assembly{*this, std::move(to_move)};
  assembly.release_small_pieces(needed);
  const auto available_bytes = assembly.available_bytes();
  const auto min_bytes = std::max(round_up(needed, source_.unit()), available_bytes);
  const auto max_bytes =
      std::clamp(available_bytes != 0 ? min_bytes : round_up(wanted, source_.unit()), min_bytes,
                 std::max(min_bytes, k_max_bytes));
  if (!assembly.reserve(max_bytes)) {
    ISTHMUS_TRY(assembly.reserve(min_bytes));
  }
  assembly.move();
  Result<void> status;
  if (!assembly.is_move_blocked() && assembly.filled() < needed) {
    status = assembly.create(assembly.capacity(), min_bytes);
    if (!status) {
      status = assembly.create(min_bytes, min_bytes);
    }
  }
  const bool is_enough = assembly.filled() >= needed;
  if (!assembly.row().empty()) {
    ISTHMUS_TRY(enter(assembly.row()));
  }
  ISTHMUS_TRY(status);
  return is_enough;
}

Result<void> RegionHeap::assemble(std::size_t needed, std::size_t wanted,
                                  QueueSlots::EntryIndex entry) try {
  drop_ended();
  auto moved = assemble_from(remove_to_move(needed, entry), needed, wanted);
  ISTHMUS_TRY(moved);
  if (!*moved) {
    ISTHMUS_TRY(assemble_from({}, needed, wanted));
  }
  return {};
} catch (const std::bad_alloc&) {
  return Error::no_memory();
}

}  // namespace isthmus
