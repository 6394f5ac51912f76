// SPDX-License-Identifier: Apache-2.0
#include "memory/records/allocation_lookup.hpp"

#include "core/lock_guard.hpp"
#include "memory/pool/page_map.hpp"
#include "memory/pool/pool.hpp"
#include "memory/records/registry.hpp"

namespace isthmus {
namespace {

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

// Finds or creates the record of a block that was allocated without one. Errors as
// `Queue::create`.
Result<Ref<Allocation>> find_or_create_record(Pool& pool, const PooledBlock& block) {
  auto& creation = pool.record_creation();
  const LockGuard hold{creation.lock};
  if (auto record = process_registry().find_block(block.start)) {
    return allocation_of(std::move(record));  // created by another thread meanwhile
  }
  if (!creation.queue) {
    auto queue = Queue::create(pool.context(), pool.device());
    ISTHMUS_TRY(queue);
    creation.queue = *std::move(queue);
  }
  return Allocation::record_block(*creation.queue,
                                  {block.start, block.nbytes, pool.unit(), pool.kind()}, pool);
}

}  // namespace

Error not_allocated(const void* pointer, std::string_view location) {
  return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
              "{} is not allocated: it lies in {}; use an address in memory that was allocated and "
              "not freed",
              pointer, location);
}

Result<Ref<Allocation>> allocation_at(const void* pointer) {
  auto* page = process_page_map.find(pointer);
  if (page == nullptr) {
    auto record = process_registry().find(pointer);
    if (!record && process_registry().is_pending_release(pointer)) {
      return not_allocated(pointer, k_freed_in_use);
    }
    return allocation_of(std::move(record));
  }
  const auto found = block_containing(*page, pointer);
  if (found.first == nullptr) {
    return is_free_in_pool(pointer, *page);
  }
  if (found.first->is_recorded()) {
    if (auto record = process_registry().find_block(found.start)) {
      return allocation_of(std::move(record));
    }
    if (process_registry().is_dying_block(found.start)) {
      return not_allocated(pointer, k_freed_in_use);
    }
  }
  auto pool = PoolPageTable::of(page).owner();
  return pool ? find_or_create_record(*pool->as_pool(), found) : is_free_in_pool(pointer, *page);
}

}  // namespace isthmus
