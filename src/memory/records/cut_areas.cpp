// SPDX-License-Identifier: Apache-2.0
#include "memory/records/cut_areas.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/lock_guard.hpp"
#include "core/never_destroyed.hpp"
#include "core/order.hpp"
#include "core/sizes.hpp"
#include "memory/pool/page_map.hpp"

namespace isthmus {

const CutAreas::Area* CutAreas::in_level(const Level& level, const void* pointer) noexcept {
  const auto next = level.upper_bound(address(pointer));
  if (next == level.begin()) {
    return nullptr;
  }
  const auto& before = std::prev(next)->second;
  return address(pointer) - address(before.base) < before.nbytes ? &before : nullptr;
}

const CutAreas::Area* CutAreas::innermost(const void* pointer, bool above_pool) const noexcept {
  for (auto each = levels_.rbegin(); each != levels_.rend(); ++each) {
    const auto* const area = in_level(*each, pointer);
    if (area != nullptr && (area->is_above_pool || !above_pool)) {
      return area;
    }
  }
  return nullptr;
}

CutAreas::Entry CutAreas::add(Area area) {
  area.is_above_pool = process_page_map.find(area.base) != nullptr;
  area.since = order_above_all();
  const LockGuard hold{lock_};
  auto depth = levels_.size();
  while (depth != 0 && in_level(levels_[depth - 1], area.base) == nullptr) {
    --depth;
  }
  if (depth == levels_.size()) {
    levels_.emplace_back();
  }
  const auto at = levels_[depth].emplace(address(area.base), area).first;
  count_.fetch_add(1, std::memory_order_relaxed);
  return {depth, at};
}

CutAreas::ExtractedArea CutAreas::extract(const Entry& entry) noexcept {
  const LockGuard hold{lock_};
  count_.fetch_sub(1, std::memory_order_relaxed);
  return {entry.depth, levels_[entry.depth].extract(entry.position)};
}

CutAreas::Entry CutAreas::reinsert(ExtractedArea extracted) noexcept {
  const LockGuard hold{lock_};
  count_.fetch_add(1, std::memory_order_relaxed);
  return {extracted.depth, levels_[extracted.depth].insert(std::move(extracted.node)).position};
}

void CutAreas::end_block(const Entry& entry) noexcept {
  const LockGuard hold{lock_};
  entry.position->second.sole_block->is_live = false;
}

std::optional<CutAreas::Found> CutAreas::find(const void* pointer, bool above_pool) noexcept {
  if (is_empty()) {
    return std::nullopt;
  }
  const SharedLockGuard hold{lock_};
  const auto* const area = innermost(pointer, above_pool);
  if (area == nullptr) {
    return std::nullopt;
  }
  auto block = area->sole_block ? *area->sole_block : area->resource->block_at(pointer);
  block.is_live = block.is_live && block.contains(pointer);
  return Found{area->resource, block, area->since};
}

Ref<MemoryResource> CutAreas::resource_at(const void* pointer, bool above_pool) noexcept {
  const SharedLockGuard hold{lock_};
  const auto* const area = innermost(pointer, above_pool);
  return area != nullptr && area->resource->try_retain()
             ? Ref<MemoryResource>::adopt(area->resource)
             : Ref<MemoryResource>{};
}

CutAreas::Nesting CutAreas::nesting_of(const void* pointer, const MemoryResource& resource,
                                       bool above_pool) noexcept {
  const SharedLockGuard hold{lock_};
  const auto* const area = innermost(pointer, above_pool);
  if (area != nullptr && area->resource == &resource) {
    return Nesting::innermost;
  }
  const bool is_enclosing = std::any_of(levels_.begin(), levels_.end(), [&](const Level& each) {
    const auto* const enclosing = in_level(each, pointer);
    return enclosing != nullptr && enclosing->resource == &resource;
  });
  return is_enclosing ? Nesting::enclosing : Nesting::outside;
}

CutAreas& process_cut_areas() noexcept {
  static NeverDestroyed<CutAreas> only;
  return *only;
}

CutChunk::CutChunk(Ref<Allocation> memory, MemoryResource& resource) : memory_{std::move(memory)} {
  const auto& facts = memory_->facts();
  memory_->mark_as_chunk();
  area_ = process_cut_areas().add(
      {static_cast<std::byte*>(facts.base), facts.nbytes, &resource, std::nullopt});
}

CutChunk::~CutChunk() { remove_area(); }

// Called before the memory is released, since another owner may obtain it afterwards.
void CutChunk::remove_area() noexcept {
  if (memory_) {
    process_cut_areas().remove(area_);
  }
}

void CutChunk::leak() noexcept {
  remove_area();
  static_cast<void>(memory_.detach());
}

}  // namespace isthmus
