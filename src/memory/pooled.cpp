// SPDX-License-Identifier: Apache-2.0
#include "memory/pooled.hpp"

#include <mutex>

#include "core/sizes.hpp"
#include "memory/page_map.hpp"
#include "memory/pool.hpp"
#include "memory/registry.hpp"
#include "memory/slab.hpp"

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

// The error for an address in free memory of the pool that the page belongs to.
Error is_free_in_pool(const void* pointer, const PoolPage& page) {
  const auto owner = PoolPageTable::of(&page).owner();
  if (!owner) {
    return not_allocated(pointer, "memory of a pool that is being destroyed");
  }
  return not_allocated(
      pointer, fmt::format("free memory of a pool of {} memory on {}", kind_name(owner->kind()),
                           owner->device().properties().filter));
}

}  // namespace

Error not_allocated(const void* pointer, std::string_view location) {
  return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
              "{} is not allocated: it lies in {}; use an address in memory that was allocated and "
              "not freed",
              pointer, location);
}

PooledBlock block_containing(PoolPage& page, const void* pointer) noexcept {
  return page.is_slab() ? slab_block(page, pointer) : run_block(page, pointer);
}

Result<Ref<Allocation>> Pool::record(const PooledBlock& block) {
  const std::lock_guard hold{records_lock_};
  if (auto record = process_registry().find_block(block.start)) {
    return record;  // created by another thread meanwhile
  }
  if (!records_queue_) {
    auto queue = context().create_queue(device());
    ISTHMUS_TRY(queue);
    records_queue_ = *std::move(queue);
  }
  return Allocation::record(*records_queue_, {block.start, block.nbytes, classes_.unit(), kind()},
                            *this);
}

Result<Ref<Allocation>> allocation_at(const void* pointer) {
  auto* page = process_page_map.find(pointer);
  if (page == nullptr) {
    auto record = process_registry().find(pointer);
    if (!record && process_registry().is_pending_release(pointer)) {
      return not_allocated(pointer, k_freed_in_use);
    }
    return record;
  }
  const auto found = block_containing(*page, pointer);
  if (found.first == nullptr) {
    return is_free_in_pool(pointer, *page);
  }
  if (found.first->is_recorded()) {
    if (auto record = process_registry().find_block(found.start)) {
      return record;
    }
    if (process_registry().is_dying_block(found.start)) {
      return not_allocated(pointer, k_freed_in_use);
    }
  }
  auto pool = PoolPageTable::of(page).owner();
  return pool ? pool->record(found) : is_free_in_pool(pointer, *page);
}

}  // namespace isthmus
