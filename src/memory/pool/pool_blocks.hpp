// SPDX-License-Identifier: Apache-2.0
#pragma once
// Finds blocks of pools by address, through the page map and without a lock. Thread-safe.

#include <cstddef>

#include "memory/pool/page_map.hpp"
#include "memory/pool/pool_page_table.hpp"
#include "memory/pool/slab.hpp"

namespace isthmus {

struct PooledBlock {
  PoolPage* first = nullptr;  // record of the page that it begins in; null: no block
  std::byte* start = nullptr;
  std::size_t nbytes = 0;  // usable bytes
};

// The block that contains `pointer`; none if the memory is free. A pool without checks does not
// know which blocks of a slab are live, so for such a pool a free block is also returned. `page` is
// the record of the page in the page map.
[[nodiscard]] PooledBlock block_containing(PoolPage& page, const void* pointer) noexcept;

// A live block without an allocation record, and the facts common to all memory of its pool. Empty
// if there is none, or if finding it takes more than a few loads.
struct BareBlock {
  PoolPageTable::CommonFacts* common = nullptr;
  std::byte* start = nullptr;
  std::size_t nbytes = 0;
};
[[nodiscard]] inline BareBlock bare_block_containing(const void* pointer) noexcept {
  const auto& entry = process_page_map.at(pointer);
  const auto seen = entry.load();
  if (!seen.is_bare()) {
    return {};
  }
  auto& owner = entry.last_slab();
  auto& common = PoolPageTable::of(seen.record()).common();
  const auto number = owner.block_containing(pointer);
  if (number == Slab::k_no_block ||
      (common.has_live_marks.load(k_relaxed) && !owner.is_live(number))) {
    return {};
  }
  auto* start = owner.address_of(number);
  // Only the entry of the page that a block begins in shows that it has a record.
  const bool is_bare = address(start) >> k_pool_page_bits == address(pointer) >> k_pool_page_bits ||
                       process_page_map.at(start).load().is_bare();
  return is_bare ? BareBlock{&common, start, owner.block_bytes} : BareBlock{};
}

}  // namespace isthmus
