// SPDX-License-Identifier: Apache-2.0
#include "memory/records/innermost.hpp"

#include <utility>

#include "core/sizes.hpp"
#include "memory/pool/page_map.hpp"
#include "memory/pool/pool.hpp"
#include "memory/records/allocation_lookup.hpp"
#include "memory/records/cut_areas.hpp"

namespace isthmus {
namespace {

bool is_inside(const KnownMemory& part, const CutBlock& block) noexcept {
  return part.facts.nbytes <= block.nbytes && block.contains(part.facts.base);
}

InnerBlock of_record(Registry::Part part) noexcept {
  const auto state = part.held ? InnerBlock::State::live : InnerBlock::State::waiting;
  const auto facts = part.known.facts;
  auto* const resource = part.known.resource;
  return {state, static_cast<std::byte*>(facts.base), facts.nbytes, resource, std::move(part)};
}

}  // namespace

std::optional<InnerBlock> inner_part_at(const void* pointer, bool in_pool) noexcept {
  const auto area = process_cut_areas().find(pointer, in_pool);
  if (!area) {
    auto record = process_registry().innermost_part(pointer);
    return record ? std::optional{of_record(std::move(*record))} : std::nullopt;
  }
  const auto& block = area->block;
  if (!block.is_live) {
    return InnerBlock{};
  }
  // A block's record covers the whole block, including the bytes beyond the requested size.
  auto record = process_registry().innermost_part(block.base);
  if (record && is_inside(record->known, block)) {
    return of_record(std::move(*record));
  }
  return InnerBlock{InnerBlock::State::live, block.base, block.nbytes, area->resource,
                    std::nullopt};
}

std::uint64_t suballocated_since(const void* pointer) noexcept {
  auto* const page = process_page_map.find(pointer);
  if (const auto area = process_cut_areas().find(pointer, page != nullptr)) {
    return area->since;
  }
  const auto owner = page != nullptr ? PoolPageTable::of(page).owner() : Ref<MemoryResource>{};
  return owner ? owner->as_pool()->since(*page) : 0;
}

bool is_suballocated(const void* pointer) noexcept {
  return process_cut_areas().find(pointer, false).has_value();
}

ByteRange BlockExtent::range() const noexcept {
  const auto begin = address(base) - address(memory->start_of_uses());
  return {begin, begin + nbytes};
}

Result<BlockExtent> innermost_at(const void* pointer) {
  auto outer = allocation_at(pointer);
  ISTHMUS_TRY(outer);
  auto memory = *std::move(outer);
  const bool in_pool = process_page_map.find(pointer) != nullptr;
  const bool is_divided = memory ? memory->is_divided() : is_suballocated(pointer);
  auto part = is_divided ? inner_part_at(pointer, in_pool) : std::nullopt;
  if (part && part->state != InnerBlock::State::live) {
    return not_allocated(pointer,
                         part->state == InnerBlock::State::waiting
                             ? k_freed_in_use
                             : "memory that a resource sub-allocates, outside of its blocks");
  }
  if (!memory) {
    return BlockExtent{};
  }
  if (!part) {
    auto* const base = static_cast<std::byte*>(memory->facts().base);
    const auto nbytes = memory->facts().nbytes;
    return BlockExtent{std::move(memory), base, nbytes};
  }
  if (part->record) {
    memory = allocation_of(std::move(part->record->held));
  }
  return BlockExtent{std::move(memory), part->base, part->nbytes};
}

}  // namespace isthmus
