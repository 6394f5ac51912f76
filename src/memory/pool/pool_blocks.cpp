// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/pool_blocks.hpp"

#include "core/sizes.hpp"

namespace isthmus {
namespace {

std::byte* start_of_page(const void* pointer) noexcept {
  auto* at = const_cast<std::byte*>(static_cast<const std::byte*>(pointer));
  return at - address(pointer) % k_pool_page_bytes;
}

PooledBlock slab_block(PoolPage& page, const void* pointer) noexcept {
  auto* owner = page.in_slab();
  if (owner == nullptr) {
    return {};
  }
  const auto number = owner->block_containing(pointer);
  if (number == Slab::k_no_block ||
      (PoolPageTable::of(&page).common().has_live_marks.load(k_relaxed) &&
       !owner->is_live(number))) {
    return {};
  }
  auto* start = owner->address_of(number);
  const auto page_distance =
      (start_of_page(pointer) - start_of_page(start)) / std::ptrdiff_t{k_pool_page_bytes};
  return {&page - page_distance, start, owner->block_bytes};
}

PooledBlock run_block(PoolPage& page, const void* pointer) noexcept {
  auto* first = first_of_run(&page);
  if (first == nullptr || first->state.load(k_relaxed) == PoolPage::State::cached) {
    return {};
  }
  return {first, start_of_page(pointer) - (&page - first) * std::ptrdiff_t{k_pool_page_bytes},
          first->span.load(k_relaxed) * k_pool_page_bytes};
}

}  // namespace

PooledBlock block_containing(PoolPage& page, const void* pointer) noexcept {
  return page.is_slab() ? slab_block(page, pointer) : run_block(page, pointer);
}

}  // namespace isthmus
