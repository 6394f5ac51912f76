// SPDX-License-Identifier: Apache-2.0
#include "memory/innermost.hpp"

#include <utility>

#include "core/sizes.hpp"
#include "memory/cut_areas.hpp"
#include "memory/page_map.hpp"
#include "memory/pool.hpp"
#include "memory/pooled.hpp"

namespace isthmus {
namespace {

bool is_inside(const KnownMemory& part, const CutBlock& block) noexcept {
  return part.what.nbytes <= block.nbytes && block.holds(part.what.base);
}

InnerPart of_record(Registry::Part found) noexcept {
  const auto now = found.held ? InnerPart::State::live : InnerPart::State::waiting;
  const auto what = found.known.what;
  auto* const from = found.known.resource;
  return {now, static_cast<std::byte*>(what.base), what.nbytes, from, std::move(found)};
}

}  // namespace

std::optional<InnerPart> inner_part_at(const void* pointer, bool in_pool) noexcept {
  const auto cut = process_cut_areas().look(pointer, in_pool);
  if (!cut) {
    auto record = process_registry().innermost_part(pointer);
    return record ? std::optional{of_record(std::move(*record))} : std::nullopt;
  }
  const auto& block = cut->block;
  if (!block.is_live) {
    return InnerPart{};
  }
  // A block's record covers the whole block, also the bytes after those that were requested.
  auto record = process_registry().innermost_part(block.base);
  if (record && is_inside(record->known, block)) {
    return of_record(std::move(*record));
  }
  return InnerPart{InnerPart::State::live, block.base, block.nbytes, cut->cutter, std::nullopt};
}

std::uint64_t cut_since(const void* pointer) noexcept {
  auto* const in = process_page_map.find(pointer);
  if (const auto cut = process_cut_areas().look(pointer, in != nullptr)) {
    return cut->since;
  }
  const auto owner = in != nullptr ? PoolPageTable::of(in).owner() : Ref<Pool>{};
  return owner ? owner->since(*in) : 0;
}

bool is_cut(const void* pointer) noexcept {
  return process_cut_areas().look(pointer, false).has_value();
}

ByteRange BlockExtent::range() const noexcept {
  const auto begin = address(base) - address(memory->start_of_uses());
  return {begin, begin + nbytes};
}

Result<BlockExtent> innermost_at(const void* pointer) {
  auto around = allocation_at(pointer);
  ISTHMUS_TRY(around);
  auto memory = *std::move(around);
  const bool in_pool = process_page_map.find(pointer) != nullptr;
  const bool is_divided = memory ? memory->has_parts() : is_cut(pointer);
  auto part = is_divided ? inner_part_at(pointer, in_pool) : std::nullopt;
  if (part && part->now != InnerPart::State::live) {
    return not_allocated(pointer,
                         part->now == InnerPart::State::waiting
                             ? k_freed_in_use
                             : "memory that a resource sub-allocates, outside of its blocks");
  }
  if (!memory) {
    return BlockExtent{};
  }
  if (!part) {
    auto* const base = static_cast<std::byte*>(memory->what().base);
    const auto nbytes = memory->what().nbytes;
    return BlockExtent{std::move(memory), base, nbytes};
  }
  if (part->record) {
    memory = std::move(part->record->held);
  }
  return BlockExtent{std::move(memory), part->base, part->nbytes};
}

}  // namespace isthmus
