// SPDX-License-Identifier: Apache-2.0
// Checks that the metadata of a pool is consistent.

#include <bit>
#include <chrono>
#include <mutex>
#include <thread>

#include "core/sizes.hpp"
#include "memory/pool/pool.hpp"

namespace isthmus {

using PoolPageState = PoolPage::State;

bool RunHeap::is_sound_free(Index first) const noexcept {
  const auto count = length_of(first);
  const auto& last = table_[first + count - 1];
  if (count == 0 || (count > 1 && (last.state.load(k_relaxed) != PoolPageState::free_last ||
                                   last.span.load(k_relaxed) != count - 1))) {
    return false;
  }
  const auto [doubling, part] = list_for(count);
  const auto before = table_[first].previous();
  const auto after = table_[first].next();
  const auto named = before == k_none ? heads_.at(doubling).at(part) : table_[before].next();
  return named == first && (after == k_none || table_[after].previous() == first) &&
         (parts_.at(doubling) >> part & 1) != 0 && (doublings_ >> doubling & 1) != 0;
}

bool RunHeap::is_sound_allocated(Index first) const noexcept {
  const auto count = length_of(first);
  for (Index offset = 1; offset < count; ++offset) {
    const auto& body = table_[first + offset];
    if (body.state.load(k_relaxed) != PoolPageState::body || body.span.load(k_relaxed) != offset) {
      return false;
    }
  }
  return count != 0;
}

RunHeap::Finding RunHeap::find_damage(Index first, Index count) const noexcept {
  Finding finding{k_none};
  bool follows_free = false;
  for (auto at = first; at < first + count;) {
    const auto& record = table_[at];
    const bool is_free = record.state.load(k_relaxed) == PoolPageState::free_head;
    const bool is_slab = record.is_slab() && record.in_slab() != nullptr;
    if (!is_slab &&
        !(is_free ? is_sound_free(at) : record.begins_run() && is_sound_allocated(at))) {
      return {at};
    }
    const bool is_border = is_free && follows_free;
    if (borders_->has(at) != is_border) {
      return {at};
    }
    follows_free = is_free;
    const auto length = is_slab ? 1 : length_of(at);
    finding.free += is_free ? length : 0;
    at += length;
    finding.neighbours += is_border ? 1 : 0;
  }
  return finding;
}

Result<void> RegionHeap::verify() noexcept {
  const std::lock_guard hold{lock_};
  std::uint64_t free = 0;
  std::uint64_t neighbours = 0;
  auto damaged = RunHeap::k_none;
  any_row([&](Index first, Index count) {
    const auto finding = runs_.find_damage(first, count);
    free += finding.free;
    neighbours += finding.neighbours;
    damaged = finding.at;
    return damaged != RunHeap::k_none;
  });
  if (damaged != RunHeap::k_none) {
    return fail(ISTHMUS_ERROR_INTERNAL,
                "the record of the 64 KiB page at {} contradicts the adjacent records",
                static_cast<void*>(address_of(damaged)));
  }
  if (free != runs_.free_pages()) {
    return fail(ISTHMUS_ERROR_INTERNAL,
                "the page records show {} of free memory, but the counter shows {}",
                describe_bytes(free * k_pool_page_bytes),
                describe_bytes(runs_.free_pages() * k_pool_page_bytes));
  }
  if (neighbours != runs_.neighbours()) {
    return fail(ISTHMUS_ERROR_INTERNAL,
                "{} pairs of free page runs are adjacent, but {} are recorded", neighbours,
                runs_.neighbours());
  }
  return {};
}

const Slab* SlabList::find_damaged() const noexcept {
  const auto is_sound = [](Slab& slab, std::size_t list) {
    std::uint32_t free_count = 0;
    std::uint32_t waiting = 0;
    bool are_disjoint = true;
    for (std::size_t word = 0; word < slab.words(); ++word) {
      free_count += static_cast<std::uint32_t>(std::popcount(slab.free_bitmap()[word]));
      waiting += static_cast<std::uint32_t>(std::popcount(slab.waiting_bitmap()[word]));
      are_disjoint = are_disjoint && (slab.free_bitmap()[word] & slab.waiting_bitmap()[word]) == 0;
    }
    for (std::uint32_t block = 0; block < slab.blocks; ++block) {
      const auto own = slab.free_bitmap()[block / 64] | slab.waiting_bitmap()[block / 64];
      are_disjoint = are_disjoint && !((own >> block % 64 & 1) != 0 && slab.is_live(block));
    }
    return are_disjoint && list_of(slab) == list && free_count == slab.free_count &&
           waiting == slab.waiting;
  };
  for (std::size_t list = 0; list <= k_waiting; ++list) {
    const Slab* before = nullptr;
    for (auto* each = first_.at(list); each != nullptr; each = each->next) {
      if (each->previous != before || !is_sound(*each, list)) {
        return each;
      }
      before = each;
    }
  }
  return nullptr;
}

Result<void> CentralShard::verify() noexcept {
  const std::lock_guard hold{lock_};
  if (const auto* damaged = slabs_.find_damaged()) {
    return fail(ISTHMUS_ERROR_INTERNAL,
                "the slab of {}-byte blocks at {} contradicts its list, or has a block that is "
                "both free and allocated",
                damaged->block_bytes, static_cast<void*>(damaged->address_of(0)));
  }
  for (std::size_t batch = 0; batch < batches_; ++batch) {
    for (auto* block : blocks_of(batch)) {
      auto& owner = process_page_map.at(block).last_slab();
      const auto number = owner.block_at(block);
      if (number == Slab::k_no_block || owner.is_live(number)) {
        return fail(ISTHMUS_ERROR_INTERNAL, "the block at {} is both free and allocated", block);
      }
    }
  }
  return {};
}

// A check may read metadata that other threads are changing, so only damage that persists is
// reported.
Result<void> Pool::verify() {
  constexpr int k_max_tries = 100;
  Result<void> status;
  for (int tries = 0; tries < k_max_tries; ++tries) {
    status = regions_.verify();
    if (status) {
      status = central_.verify();
    }
    if (status) {
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  ISTHMUS_TRY(status);
  auto* const upstream = source_.upstream();
  return upstream != nullptr ? upstream->verify() : Result<void>{};
}

}  // namespace isthmus
