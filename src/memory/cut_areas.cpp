// SPDX-License-Identifier: Apache-2.0
#include "memory/cut_areas.hpp"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>

#include "core/never_destroyed.hpp"
#include "core/order.hpp"
#include "core/sizes.hpp"
#include "memory/page_map.hpp"

namespace isthmus {

const CutAreas::Area* CutAreas::in_level(const Level& in, const void* pointer) noexcept {
  const auto next = in.upper_bound(address(pointer));
  if (next == in.begin()) {
    return nullptr;
  }
  const auto& before = std::prev(next)->second;
  return address(pointer) - address(before.base) < before.nbytes ? &before : nullptr;
}

const CutAreas::Area* CutAreas::innermost(const void* pointer, bool above_pool) const noexcept {
  for (auto each = levels_.rbegin(); each != levels_.rend(); ++each) {
    const auto* const in = in_level(*each, pointer);
    if (in != nullptr && (in->is_above_pool || !above_pool)) {
      return in;
    }
  }
  return nullptr;
}

CutAreas::Entry CutAreas::add(Area area) {
  area.is_above_pool = process_page_map.find(area.base) != nullptr;
  area.since = order_from_here();
  const std::unique_lock hold{lock_};
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

CutAreas::Taken CutAreas::take(const Entry& which) noexcept {
  const std::unique_lock hold{lock_};
  count_.fetch_sub(1, std::memory_order_relaxed);
  return {which.depth, levels_[which.depth].extract(which.at)};
}

CutAreas::Entry CutAreas::put_back(Taken which) noexcept {
  const std::unique_lock hold{lock_};
  count_.fetch_add(1, std::memory_order_relaxed);
  return {which.depth, levels_[which.depth].insert(std::move(which.node)).position};
}

void CutAreas::end_block(const Entry& which) noexcept {
  const std::unique_lock hold{lock_};
  which.at->second.only->is_live = false;
}

std::optional<CutAreas::Found> CutAreas::look(const void* pointer, bool above_pool) noexcept {
  if (is_empty()) {
    return std::nullopt;
  }
  const std::shared_lock hold{lock_};
  const auto* const in = innermost(pointer, above_pool);
  if (in == nullptr) {
    return std::nullopt;
  }
  auto block = in->only ? *in->only : in->cutter->block_at(pointer);
  block.is_live = block.is_live && block.holds(pointer);
  return Found{in->cutter, block, in->since};
}

Ref<MemoryResource> CutAreas::cutter_at(const void* pointer, bool above_pool) noexcept {
  const std::shared_lock hold{lock_};
  const auto* const in = innermost(pointer, above_pool);
  return in != nullptr && in->cutter->try_retain() ? Ref<MemoryResource>::adopt(in->cutter)
                                                   : Ref<MemoryResource>{};
}

CutAreas::Place CutAreas::place_of(const void* pointer, const MemoryResource& cutter,
                                   bool in_pool) noexcept {
  const std::shared_lock hold{lock_};
  const auto* const inner = innermost(pointer, in_pool);
  if (inner != nullptr && inner->cutter == &cutter) {
    return Place::innermost;
  }
  const bool is_below = std::any_of(levels_.begin(), levels_.end(), [&](const Level& each) {
    const auto* const in = in_level(each, pointer);
    return in != nullptr && in->cutter == &cutter;
  });
  return is_below ? Place::below_another : Place::outside;
}

CutAreas& process_cut_areas() noexcept {
  static NeverDestroyed<CutAreas> only;
  return *only;
}

CutChunk::CutChunk(Ref<Allocation> memory, MemoryResource& cutter) : memory_{std::move(memory)} {
  const auto& what = memory_->what();
  memory_->become_chunk();
  area_ = process_cut_areas().add(
      {static_cast<std::byte*>(what.base), what.nbytes, &cutter, std::nullopt});
}

CutChunk::~CutChunk() { leave(); }

// The area is removed first: once the memory is released, another owner may get it.
void CutChunk::leave() noexcept {
  if (memory_) {
    process_cut_areas().remove(area_);
  }
}

void CutChunk::lose() noexcept {
  leave();
  static_cast<void>(memory_.detach());
}

}  // namespace isthmus
