// SPDX-License-Identifier: Apache-2.0
#include "memory/facts.hpp"

#include "memory/cut_areas.hpp"
#include "memory/innermost.hpp"
#include "memory/page_map.hpp"
#include "memory/pool.hpp"
#include "memory/pooled.hpp"
#include "memory/registry.hpp"

namespace isthmus {
namespace {

// Looks up a pointer without taking a lock. A block's record covers the whole block, also the bytes
// after those that were requested.
struct FoundPlace {
  PoolPage* in = nullptr;  // null: in no pool
  PooledBlock block;
  std::optional<KnownMemory> known;

  explicit FoundPlace(const void* pointer) noexcept
      : in{process_page_map.find(pointer)},
        block{in == nullptr ? PooledBlock{} : block_holding(*in, pointer)},
        known{look(pointer)} {}
  [[nodiscard]] std::optional<KnownMemory> look(const void* pointer) const noexcept {
    if (in == nullptr) {
      return process_registry().look(pointer);
    }
    const bool has_record = block.first != nullptr && block.first->is_recorded();
    return has_record ? process_registry().look_block(block.start) : std::nullopt;
  }
  [[nodiscard]] bool is_dying() const noexcept { return known && known->is_dying; }
  // For memory that is divided further, or that has no record: what is known of the innermost
  // block.
  [[nodiscard]] std::optional<InnerPart> part(const void* pointer) const noexcept {
    const bool is_divided =
        known ? known->has_parts && !is_dying() : in == nullptr && is_cut(pointer);
    return is_divided ? inner_part_at(pointer, in != nullptr) : std::nullopt;
  }
  [[nodiscard]] PoolPageTable& table() const noexcept { return PoolPageTable::of(in); }
  [[nodiscard]] std::uintptr_t context_key() const noexcept {
    return known ? known->home_key : table().common().context_key.load(k_relaxed);
  }
};

// For memory of a pool from the pool's page runs, else from the record.
RequestFacts request_of(const FoundPlace& at) noexcept {
  if (at.in == nullptr) {
    return {at.known->what.nbytes, at.known->queue_key};
  }
  if (at.in->is_slab()) {
    return {};
  }
  const auto& origin = at.table().origin_of(at.table().number_of(at.block.first));
  return {origin.nbytes.load(k_relaxed), origin.queue_key.load(k_relaxed)};
}

PointerRecord record_in(const FoundPlace& at) noexcept {
  const auto& known = *at.known;
  return {known.what, known.context, known.resource, ISTHMUS_MEMORY_LIVE, request_of(at)};
}

PointerRecord record_in_pool(const FoundPlace& at) noexcept {
  if (at.block.first == nullptr || at.is_dying()) {
    const auto state = at.is_dying() ? ISTHMUS_MEMORY_WAITING : ISTHMUS_MEMORY_FREE;
    return {{}, nullptr, nullptr, state, {}};
  }
  const auto& common = at.table().common();
  return {
      {common.kind.load(k_relaxed), at.block.start, at.block.nbytes, common.where.load(k_relaxed)},
      common.home.load(k_relaxed),
      common.from.load(k_relaxed),
      ISTHMUS_MEMORY_LIVE,
      request_of(at)};
}

// If the part is live, the memory around it has a record: `at.known`.
PointerRecord record_of_part(const FoundPlace& at, const InnerPart& part) noexcept {
  if (part.now != InnerPart::State::live || !at.known) {
    const auto state =
        part.now == InnerPart::State::waiting ? ISTHMUS_MEMORY_WAITING : ISTHMUS_MEMORY_FREE;
    return {{}, nullptr, nullptr, state, {}};
  }
  auto what = at.known->what;
  what.base = part.base;
  what.nbytes = part.nbytes;
  RequestFacts request;
  if (part.record) {
    what.kind = part.record->known.what.kind;
    request = {part.nbytes, part.record->known.queue_key};
  }
  return {what, at.known->context, part.resource, ISTHMUS_MEMORY_LIVE, request};
}

// For memory without a record: what the driver knows, if there is a context to query.
PointerRecord record_elsewhere(Context* asked, const void* pointer, bool is_dying) {
  PointerRecord known{
      {}, asked, nullptr, is_dying ? ISTHMUS_MEMORY_WAITING : ISTHMUS_MEMORY_UNKNOWN, {}};
  if (asked == nullptr) {
    return known;
  }
  known.what = asked->query(pointer);
  if (known.what.kind != ISTHMUS_KIND_UNKNOWN) {
    known.state = is_dying ? ISTHMUS_MEMORY_WAITING : ISTHMUS_MEMORY_LIVE;
  } else if (asked->takes_host_memory() && pointer != nullptr) {
    known.what.kind = ISTHMUS_KIND_HOST;
  } else {
    return {};
  }
  return known;
}

PointerOrigin origin_of_part(const void* pointer, const FoundPlace& at,
                             const InnerPart& part) noexcept {
  if (part.now != InnerPart::State::live) {
    return {};
  }
  if (part.record) {
    const auto& held = *part.record->held;
    return {Ref<Context>{&held.context()}, Ref<MemoryResource>{held.resource()}};
  }
  auto cutter = process_cut_areas().cutter_at(pointer, at.in != nullptr);
  return cutter ? PointerOrigin{Ref<Context>{&cutter->context()}, std::move(cutter)}
                : PointerOrigin{};
}

}  // namespace

PointerRecord record_of(Context* asked, const void* pointer) {
  const FoundPlace at{pointer};
  const auto part = at.part(pointer);
  if (at.in == nullptr && !part && (!at.known || at.is_dying())) {
    return record_elsewhere(asked, pointer, at.is_dying());
  }
  // Drivers accept a pointer of another context without an error (Intel's OpenCL runtime does), so
  // it is refused here.
  if (asked != nullptr && (at.known || at.in != nullptr) && at.context_key() != asked->key()) {
    return {};
  }
  if (part) {
    return record_of_part(at, *part);
  }
  return at.known && !at.is_dying() ? record_in(at) : record_in_pool(at);
}

PointerFacts facts_of(Context& context, const void* pointer) {
  return record_of(&context, pointer).what;
}

PointerOrigin origin_of(const void* pointer) {
  const FoundPlace at{pointer};
  if (const auto part = at.part(pointer)) {
    return origin_of_part(pointer, at, *part);
  }
  if (at.known) {
    auto& all = process_registry();
    const auto held = at.in == nullptr ? all.find(pointer) : all.find_block(at.block.start);
    return held ? PointerOrigin{Ref<Context>{&held->context()},
                                Ref<MemoryResource>{held->resource()}}
                : PointerOrigin{};
  }
  if (at.block.first == nullptr) {
    return {};
  }
  auto owner = at.table().owner();
  return owner ? PointerOrigin{Ref<Context>{&owner->context()}, std::move(owner)} : PointerOrigin{};
}

}  // namespace isthmus
