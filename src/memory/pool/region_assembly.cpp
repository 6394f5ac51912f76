// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/region_assembly.hpp"

#include <algorithm>
#include <numeric>

#include "core/sizes.hpp"
#include "memory/pool/unused_regions.hpp"

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

RegionAssembly::~RegionAssembly() {
  for (const auto& each : to_move_) {
    drop(each);
  }
  for (const auto& each : row_) {
    drop(each);
  }
  if (reservation_ != nullptr) {
    source_.release_user(*reservation_);
  }
}

std::size_t RegionAssembly::available_bytes() const noexcept {
  return std::accumulate(
      to_move_.begin(), to_move_.end(), std::size_t{0},
      [](std::size_t sum, const RegionHeap::Piece& each) { return sum + each.region.nbytes(); });
}

void RegionAssembly::release_small_pieces(std::size_t needed) noexcept {
  const auto share = available_bytes() < needed ? needed / k_min_share : 0;
  const auto min_bytes = std::max(UnusedRegions::k_min_part * k_pool_page_bytes, share);
  std::erase_if(to_move_, [&](const RegionHeap::Piece& each) {
    const bool is_small = source_.divides() && each.region.nbytes() < min_bytes;
    if (is_small) {
      drop(each);
    }
    return is_small;
  });
}

Result<void> RegionAssembly::reserve(std::size_t nbytes) {
  max_chunk_bytes_ = source_.divides() ? nbytes : chunk_bytes(nbytes);
  row_.reserve(to_move_.size() + nbytes / max_chunk_bytes_ + 2);
  auto reservation = source_.reserve(nbytes);
  ISTHMUS_TRY(reservation);
  reservation_ = *reservation;
  return {};
}

void RegionAssembly::move() {
  for (; !to_move_.empty(); to_move_.pop_back()) {
    auto& each = to_move_.back();
    auto old = is_move_blocked_ ? Result<Region>{Error::no_memory()}
                                : source_.move(each.region, *reservation_);
    if (old) {
      row_.push_back(each);
      deferred_.drop_old_mapping(*old, each.until);
    } else {
      is_move_blocked_ = true;
      drop(each);
    }
  }
}

Result<void> RegionAssembly::create(std::size_t wanted, std::size_t needed) {
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

void RegionAssembly::shrink_to(std::size_t needed) noexcept {
  while (!row_.empty() && filled() - row_.back().region.nbytes() >= needed) {
    reservation_->filled -= row_.back().region.nbytes();
    drop(row_.back());
    row_.pop_back();
  }
}

}  // namespace isthmus
