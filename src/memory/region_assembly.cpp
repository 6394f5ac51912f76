// SPDX-License-Identifier: Apache-2.0
// Growth of a region heap whose memory can move: free chunks are remapped side by side to new
// addresses, and new chunks are created after them.

#include <algorithm>
#include <new>
#include <numeric>

#include "core/sizes.hpp"
#include "memory/region_heap.hpp"

namespace isthmus {
namespace {

// The size of a new chunk. One block in a chunk that does not divide keeps all of it from moving,
// but each chunk costs a mapping. So the size is a share of the request, within bounds. For
// recorded training and table operations (isthmus replay on a simulated device), held over
// requested bytes and maps plus unmaps in 1,000 operations were:
// - 8 MiB for all requests: 1.015 and 1.085, with 70 and 122;
// - 1/16 of the request: 1.007 and 1.068, with 116 and 152;
// - 2 MiB for all requests: 1.004 and 1.028, with 262 and 462.
constexpr std::size_t k_chunks = 16;
constexpr std::size_t k_least_in_chunk = std::size_t{2} << 20;
constexpr std::size_t k_most_in_chunk = std::size_t{8} << 20;

std::size_t chunk_bytes(std::size_t nbytes) noexcept {
  return std::clamp(round_up(nbytes / k_chunks, k_least_in_chunk), k_least_in_chunk,
                    k_most_in_chunk);
}

// The share of the request below which a free piece is not moved if the driver is called anyway: as
// part of the one new chunk that memory is not split again. On recorded table operations 1/32 held
// 1.018 times the requested bytes with 47 maps and unmaps in 1,000 operations; without this rule it
// was 1.023 times with 58.
constexpr std::size_t k_least_share = 32;

}  // namespace

// Assembles a row of adjacent chunks from free pieces and new memory. What was not entered in the
// heap at the end is released to the driver: it was free, so nothing is lost.
class RegionHeap::Assembly {
 public:
  Assembly(RegionHeap& heap, std::vector<Piece> to_move) noexcept
      : of_{heap}, source_{heap.source_}, to_move_{std::move(to_move)} {}
  Assembly(const Assembly&) = delete;
  Assembly& operator=(const Assembly&) = delete;
  ~Assembly() {
    for (const auto& each : to_move_) {
      of_.drop(each);
    }
    for (const auto& each : row_) {
      of_.drop(each);
    }
    if (in_ != nullptr) {
      source_.release_now(*in_);
    }
  }

  // Releases pieces that are too small to be worth a mapping. Each is a whole chunk by now, so no
  // mapping of it remains.
  void give_back_dust(std::size_t needed) noexcept {
    const auto share = at_hand() < needed ? needed / k_least_share : 0;
    const auto least = std::max(k_least_part * k_pool_page_bytes, share);
    std::erase_if(to_move_, [&](const Piece& each) {
      const bool is_dust = source_.divides() && each.what.nbytes() < least;
      if (is_dust) {
        of_.drop(each);
      }
      return is_dust;
    });
  }
  [[nodiscard]] Result<void> reserve(std::size_t nbytes) {
    most_in_chunk_ = source_.divides() ? nbytes : chunk_bytes(nbytes);
    row_.reserve(to_move_.size() + nbytes / most_in_chunk_ + 2);
    auto made = source_.reserve(nbytes);
    ISTHMUS_TRY(made);
    in_ = *made;
    return {};
  }
  // If a piece cannot move, nothing may be mapped after it: it and all remaining pieces are
  // released to the driver.
  void move() {
    for (; !to_move_.empty(); to_move_.pop_back()) {
      auto& each = to_move_.back();
      auto old = is_cut_off_ ? Result<Region>{Error::no_memory()} : source_.move(each.what, *in_);
      if (old) {
        row_.push_back(each);
        of_.drop({*old, each.until, true});
      } else {
        is_cut_off_ = true;
        of_.drop(each);
      }
    }
  }
  // Creates chunks up to `wanted` bytes in total. On failure, chunks beyond `needed` are released
  // again.
  [[nodiscard]] Result<void> create(std::size_t wanted, std::size_t needed) {
    while (filled() < wanted) {
      auto made = source_.create(*in_, std::min(wanted - filled(), most_in_chunk_));
      if (!made) {
        cut_back(needed);
        return filled() >= needed ? Result<void>{} : Result<void>{made.take_error()};
      }
      row_.push_back({*made, {}});
    }
    return {};
  }
  [[nodiscard]] std::size_t room() const noexcept { return in_->nbytes; }
  [[nodiscard]] bool is_cut_off() const noexcept { return is_cut_off_; }
  [[nodiscard]] std::vector<Piece>& row() noexcept { return row_; }
  [[nodiscard]] std::size_t filled() const noexcept { return in_->filled; }
  [[nodiscard]] std::size_t at_hand() const noexcept {
    return std::accumulate(
        to_move_.begin(), to_move_.end(), std::size_t{0},
        [](std::size_t sum, const Piece& each) { return sum + each.what.nbytes(); });
  }

 private:
  void cut_back(std::size_t needed) noexcept {
    while (!row_.empty() && filled() - row_.back().what.nbytes() >= needed) {
      in_->filled -= row_.back().what.nbytes();
      of_.drop(row_.back());
      row_.pop_back();
    }
  }

  RegionHeap& of_;
  RegionSource& source_;
  std::vector<Piece> to_move_;
  std::vector<Piece> row_;
  Reservation* in_ = nullptr;
  std::size_t most_in_chunk_ = 0;
  bool is_cut_off_ = false;
};

// A moved chunk also stays mapped at its old address until nothing uses it there. The driver frees
// its memory only when that mapping is released.
bool RegionHeap::is_elsewhere_too(const Region& which) const noexcept {
  return std::any_of(late_.begin(), late_.end(), [&](const Piece& each) {
    return each.is_left && each.what.chunk == which.chunk;
  });
}

bool RegionHeap::may_go(const Piece& gone) const noexcept {
  return slots_.passed(gone.until) && (gone.is_left || !is_elsewhere_too(gone.what));
}

void RegionHeap::release_now(const Piece& gone) noexcept {
  gone.is_left ? source_.leave(gone.what) : source_.give_back(gone.what);
}

void RegionHeap::drop(const Piece& gone) noexcept {
  if (may_go(gone)) {
    release_now(gone);
  } else {
    late_.push_back(gone);
    late_bytes_.fetch_add(gone.is_left ? 0 : gone.what.driver_bytes, std::memory_order_relaxed);
  }
}

// Old mappings first, since chunks wait for them.
std::size_t RegionHeap::drop_what_ended() noexcept {
  const auto late_before = late_bytes();
  const auto drop_those = [this](bool are_left) {
    const auto gone = std::partition(late_.begin(), late_.end(), [&](const Piece& each) {
      return each.is_left != are_left || !may_go(each);
    });
    std::for_each(gone, late_.end(), [this](const Piece& each) {
      release_now(each);
      late_bytes_.fetch_sub(each.is_left ? 0 : each.what.driver_bytes, std::memory_order_relaxed);
    });
    late_.erase(gone, late_.end());
  };
  drop_those(true);
  drop_those(false);
  return late_before - late_bytes();
}

// Chooses what to move: one piece that suffices by itself; else the longest first, so that fewer
// have to move, and as the last one the shortest that suffices. The surplus stays in one piece
// after the run: split off, it would be one more piece to move next time.
std::vector<RegionHeap::Piece> RegionHeap::take_to_move(std::size_t needed, QueueSlots::Slot slot) {
  std::unique_lock hold{lock_};
  // Otherwise a chunk that consists of two free runs, one of them used by work of this queue, would
  // count as in use: recorded training whose host runs ahead held 1.027 times the requested bytes
  // without this, 1.015 with it.
  if (source_.moves_in_order()) {
    unite_all(slot, hold);
  }
  auto all = find_unused(slot);
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
  std::vector<Piece> taken(chosen.size());
  late_.reserve(late_.size() + 2 * chosen.size());  // each, and the mapping that it leaves
  const auto regions = take_out(chosen);
  std::transform(regions.begin(), regions.end(), chosen.begin(), taken.begin(),
                 [](const Region& region, const Unused& was) { return Piece{region, was.until}; });
  return taken;
}

// Requests from the driver only what is missing beside the moved pieces. What was assembled before
// an error is free memory like any other. False if a failed move left less than is needed.
Result<bool> RegionHeap::assemble_from(std::vector<Piece> to_move, std::size_t needed,
                                       std::size_t wanted) {
  Assembly made{*this, std::move(to_move)};
  made.give_back_dust(needed);
  const auto at_hand = made.at_hand();
  const auto whole = std::max(round_up(needed, source_.unit()), at_hand);
  const auto most = std::clamp(at_hand != 0 ? whole : round_up(wanted, source_.unit()), whole,
                               std::max(whole, k_most_bytes));
  if (!made.reserve(most)) {
    ISTHMUS_TRY(made.reserve(whole));
  }
  made.move();
  Result<void> done;
  if (!made.is_cut_off() && made.filled() < needed) {
    done = made.create(made.room(), whole);
    if (!done) {
      done = made.create(whole, whole);
    }
  }
  const bool enough = made.filled() >= needed;
  if (!made.row().empty()) {
    ISTHMUS_TRY(enter(made.row()));
  }
  ISTHMUS_TRY(done);
  return enough;
}

Result<void> RegionHeap::assemble(std::size_t needed, std::size_t wanted,
                                  QueueSlots::Slot slot) try {
  drop_what_ended();
  auto moved = assemble_from(take_to_move(needed, slot), needed, wanted);
  ISTHMUS_TRY(moved);
  if (!*moved) {
    ISTHMUS_TRY(assemble_from({}, needed, wanted));
  }
  return {};
} catch (const std::bad_alloc&) {
  return Error::no_memory();
}

}  // namespace isthmus
