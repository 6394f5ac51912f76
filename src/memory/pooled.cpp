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

std::byte* start_of_grain(const void* pointer) noexcept {
  auto* at = const_cast<std::byte*>(static_cast<const std::byte*>(pointer));
  return at - address(pointer) % k_pool_page_bytes;
}

PooledBlock slab_block(PoolPage& in, const void* pointer) noexcept {
  auto* owner = in.in_slab();
  if (owner == nullptr) {
    return {};
  }
  const auto number = owner->block_holding(pointer);
  if (number == Slab::k_no_block ||
      (PoolPageTable::of(&in).common().knows_live.load(k_relaxed) && !owner->is_live(number))) {
    return {};
  }
  auto* start = owner->address_of(number);
  const auto back =
      (start_of_grain(pointer) - start_of_grain(start)) / std::ptrdiff_t{k_pool_page_bytes};
  return {&in - back, start, owner->block_bytes};
}

PooledBlock run_block(PoolPage& in, const void* pointer) noexcept {
  auto* first = first_of_run(&in);
  if (first == nullptr || first->is.load(k_relaxed) == PoolPage::State::cached) {
    return {};
  }
  return {first, start_of_grain(pointer) - (&in - first) * std::ptrdiff_t{k_pool_page_bytes},
          first->span.load(k_relaxed) * k_pool_page_bytes};
}

// The error for an address in free memory of the pool that the page belongs to.
Error is_free_in_pool(const void* pointer, const PoolPage& in) {
  const auto owner = PoolPageTable::of(&in).owner();
  if (!owner) {
    return not_allocated(pointer, "memory of a pool that is being destroyed");
  }
  return not_allocated(
      pointer, fmt::format("free memory of a pool of {} memory on {}", kind_name(owner->kind()),
                           owner->device().properties().filter));
}

}  // namespace

Error not_allocated(const void* pointer, std::string_view in) {
  return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
              "{} is not allocated: it lies in {}; use an address in memory that was allocated and "
              "not freed",
              pointer, in);
}

PooledBlock block_holding(PoolPage& in, const void* pointer) noexcept {
  return in.is_slab() ? slab_block(in, pointer) : run_block(in, pointer);
}

Result<Ref<Allocation>> Pool::record(const PooledBlock& block) {
  const std::lock_guard hold{records_lock_};
  if (auto known = process_registry().find_block(block.start)) {
    return known;  // created by another thread meanwhile
  }
  if (!records_queue_) {
    auto made = context().create_queue(device());
    ISTHMUS_TRY(made);
    records_queue_ = *std::move(made);
  }
  return Allocation::record(*records_queue_, {block.start, block.nbytes, classes_.unit(), kind()},
                            *this);
}

Result<Ref<Allocation>> allocation_at(const void* pointer) {
  auto* in = process_page_map.find(pointer);
  if (in == nullptr) {
    auto known = process_registry().find(pointer);
    if (!known && process_registry().is_returning(pointer)) {
      return not_allocated(pointer, k_freed_in_use);
    }
    return known;
  }
  const auto found = block_holding(*in, pointer);
  if (found.first == nullptr) {
    return is_free_in_pool(pointer, *in);
  }
  if (found.first->is_recorded()) {
    if (auto known = process_registry().find_block(found.start)) {
      return known;
    }
    if (process_registry().is_dying_block(found.start)) {
      return not_allocated(pointer, k_freed_in_use);
    }
  }
  auto from = PoolPageTable::of(in).owner();
  return from ? from->record(found) : is_free_in_pool(pointer, *in);
}

}  // namespace isthmus
