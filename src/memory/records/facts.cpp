// SPDX-License-Identifier: Apache-2.0
#include "memory/records/facts.hpp"

#include "memory/pool/page_map.hpp"
#include "memory/pool/pool.hpp"
#include "memory/records/allocation_lookup.hpp"
#include "memory/records/cut_areas.hpp"
#include "memory/records/innermost.hpp"
#include "memory/records/registry.hpp"

namespace isthmus {
namespace {

// Looks up a pointer without taking a lock. A block's record covers the whole block, including the
// bytes beyond the requested size.
struct LookupResult {
  PoolPage* page = nullptr;  // null: in no pool
  PooledBlock block;
  std::optional<KnownMemory> record;

  explicit LookupResult(const void* pointer) noexcept
      : page{process_page_map.find(pointer)},
        block{page == nullptr ? PooledBlock{} : block_containing(*page, pointer)},
        record{look_up(pointer)} {}
  [[nodiscard]] std::optional<KnownMemory> look_up(const void* pointer) const noexcept {
    if (page == nullptr) {
      return process_registry().lookup(pointer);
    }
    const bool has_record = block.first != nullptr && block.first->is_recorded();
    return has_record ? process_registry().lookup_block(block.start) : std::nullopt;
  }
  [[nodiscard]] bool is_dying() const noexcept { return record && record->is_dying; }
  // The innermost block, if a resource sub-allocates the memory; else nothing.
  [[nodiscard]] std::optional<InnerBlock> inner_part(const void* pointer) const noexcept {
    const bool is_divided =
        record ? record->has_parts && !is_dying() : page == nullptr && is_suballocated(pointer);
    return is_divided ? inner_part_at(pointer, page != nullptr) : std::nullopt;
  }
  [[nodiscard]] PoolPageTable& table() const noexcept { return PoolPageTable::of(page); }
  [[nodiscard]] std::uintptr_t context_key() const noexcept {
    return record ? record->context_key : table().common().context_key.load(k_relaxed);
  }
};

// Read from the page run for memory of a pool, else from the record. Unknown for blocks of slabs.
RequestFacts request_of(const LookupResult& lookup) noexcept {
  if (lookup.page == nullptr) {
    return {lookup.record->facts.nbytes, lookup.record->queue_key};
  }
  if (lookup.page->is_slab()) {
    return {};
  }
  const auto& origin = lookup.table().origin_of(lookup.table().number_of(lookup.block.first));
  return {origin.nbytes.load(k_relaxed), origin.queue_key.load(k_relaxed)};
}

PointerRecord record_in(const LookupResult& lookup) noexcept {
  const auto& record = *lookup.record;
  return {record.facts, record.context, record.resource, ISTHMUS_MEMORY_LIVE, request_of(lookup)};
}

PointerRecord record_in_pool(const LookupResult& lookup) noexcept {
  if (lookup.block.first == nullptr || lookup.is_dying()) {
    const auto state = lookup.is_dying() ? ISTHMUS_MEMORY_WAITING : ISTHMUS_MEMORY_FREE;
    return {{}, nullptr, nullptr, state, {}};
  }
  const auto& common = lookup.table().common();
  return {{common.kind.load(k_relaxed), lookup.block.start, lookup.block.nbytes,
           common.device.load(k_relaxed)},
          common.context.load(k_relaxed),
          common.resource.load(k_relaxed),
          ISTHMUS_MEMORY_LIVE,
          request_of(lookup)};
}

// If the part is live, the memory around it has a record: `lookup.record`.
PointerRecord record_of_part(const LookupResult& lookup, const InnerBlock& part) noexcept {
  if (part.state != InnerBlock::State::live || !lookup.record) {
    const auto state =
        part.state == InnerBlock::State::waiting ? ISTHMUS_MEMORY_WAITING : ISTHMUS_MEMORY_FREE;
    return {{}, nullptr, nullptr, state, {}};
  }
  auto facts = lookup.record->facts;
  facts.base = part.base;
  facts.nbytes = part.nbytes;
  RequestFacts request;
  if (part.record) {
    facts.kind = part.record->known.facts.kind;
    request = {part.nbytes, part.record->known.queue_key};
  }
  return {facts, lookup.record->context, part.resource, ISTHMUS_MEMORY_LIVE, request};
}

// For memory without a record: queries the driver, if there is a context.
PointerRecord record_from_driver(Context* context, const void* pointer, bool is_dying) {
  PointerRecord record{
      {}, context, nullptr, is_dying ? ISTHMUS_MEMORY_WAITING : ISTHMUS_MEMORY_UNKNOWN, {}};
  if (context == nullptr) {
    return record;
  }
  record.facts = context->query(pointer);
  if (record.facts.kind != ISTHMUS_KIND_UNKNOWN) {
    record.state = is_dying ? ISTHMUS_MEMORY_WAITING : ISTHMUS_MEMORY_LIVE;
  } else if (context->takes_host_memory() && pointer != nullptr) {
    record.facts.kind = ISTHMUS_KIND_HOST;
  } else {
    return {};
  }
  return record;
}

PointerOrigin origin_of_part(const void* pointer, const LookupResult& lookup,
                             const InnerBlock& part) noexcept {
  if (part.state != InnerBlock::State::live) {
    return {};
  }
  if (part.record) {
    const auto& held = *part.record->held;
    return {Ref<Context>{&held.context()}, Ref<MemoryResource>{held.resource()}};
  }
  auto resource = process_cut_areas().resource_at(pointer, lookup.page != nullptr);
  return resource ? PointerOrigin{Ref<Context>{&resource->context()}, std::move(resource)}
                  : PointerOrigin{};
}

}  // namespace

PointerRecord record_of(Context* context, const void* pointer) {
  const LookupResult lookup{pointer};
  const auto part = lookup.inner_part(pointer);
  if (lookup.page == nullptr && !part && (!lookup.record || lookup.is_dying())) {
    return record_from_driver(context, pointer, lookup.is_dying());
  }
  // Some drivers, such as Intel's OpenCL runtime, accept a pointer of another context without an
  // error. Therefore such a pointer is rejected here.
  if (context != nullptr && (lookup.record || lookup.page != nullptr) &&
      lookup.context_key() != context->key()) {
    return {};
  }
  if (part) {
    return record_of_part(lookup, *part);
  }
  return lookup.record && !lookup.is_dying() ? record_in(lookup) : record_in_pool(lookup);
}

PointerFacts facts_of(Context& context, const void* pointer) {
  return record_of(&context, pointer).facts;
}

PointerOrigin origin_of(const void* pointer) {
  const LookupResult lookup{pointer};
  if (const auto part = lookup.inner_part(pointer)) {
    return origin_of_part(pointer, lookup, *part);
  }
  if (lookup.record) {
    auto& registry = process_registry();
    const auto held =
        lookup.page == nullptr ? registry.find(pointer) : registry.find_block(lookup.block.start);
    return held ? PointerOrigin{Ref<Context>{&held->context()},
                                Ref<MemoryResource>{held->resource()}}
                : PointerOrigin{};
  }
  if (lookup.block.first == nullptr) {
    return {};
  }
  auto owner = lookup.table().owner();
  return owner ? PointerOrigin{Ref<Context>{&owner->context()}, std::move(owner)} : PointerOrigin{};
}

}  // namespace isthmus
