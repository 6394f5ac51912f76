#include "memory/facts.hpp"

#include "memory/page_map.hpp"
#include "memory/pool.hpp"
#include "memory/pooled.hpp"
#include "memory/registry.hpp"

namespace isthmus {
namespace {

// Where a pointer leads, without a lock. A block's record is that of all of it, also of what lies
// behind the bytes that its buffer was made with.
struct found_place {
  grain* in = nullptr;  // null: in no pool
  pooled_block block;
  std::optional<known_memory> known;

  explicit found_place(const void* pointer) noexcept : in{process_page_map.find(pointer)} {
    if (in == nullptr) {
      known = process_registry().look(pointer);
      return;
    }
    block = block_holding(*in, pointer);
    if (block.first != nullptr && block.first->is_recorded()) {
      known = process_registry().look(block.start);
    }
  }
  [[nodiscard]] bool is_dying() const noexcept { return known && known->is_dying; }
  [[nodiscard]] grain_table& table() const noexcept { return grain_table::of(in); }
  [[nodiscard]] std::uintptr_t context_key() const noexcept {
    return known ? known->home_key : table().common().context_key.load(k_relaxed);
  }
};

pointer_record record_in(const known_memory& known) noexcept {
  return {known.what, known.home, known.from, ISTHMUS_MEMORY_LIVE};
}

pointer_record record_in_pool(const found_place& at) noexcept {
  if (at.block.first == nullptr || at.is_dying()) {
    return {{}, nullptr, nullptr, at.is_dying() ? ISTHMUS_MEMORY_WAITING : ISTHMUS_MEMORY_FREE};
  }
  const auto& common = at.table().common();
  return {
      {common.kind.load(k_relaxed), at.block.start, at.block.nbytes, common.where.load(k_relaxed)},
      common.home.load(k_relaxed),
      common.from.load(k_relaxed),
      ISTHMUS_MEMORY_LIVE};
}

// Of memory that no record of ours is of: what the driver knows, if there is one to ask.
pointer_record record_elsewhere(context* asked, const void* pointer, bool is_dying) {
  pointer_record known{
      {}, asked, nullptr, is_dying ? ISTHMUS_MEMORY_WAITING : ISTHMUS_MEMORY_UNKNOWN};
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

}  // namespace

pointer_record record_of(context* asked, const void* pointer) {
  const found_place at{pointer};
  if (at.in == nullptr && (!at.known || at.is_dying())) {
    return record_elsewhere(asked, pointer, at.is_dying());
  }
  // Drivers take another context's pointer without a word (Intel's OpenCL runtime does): refuse it.
  if (asked != nullptr && at.context_key() != asked->key()) {
    return {};
  }
  return at.known && !at.is_dying() ? record_in(*at.known) : record_in_pool(at);
}

pointer_facts facts_of(context& home, const void* pointer) {
  return record_of(&home, pointer).what;
}

pointer_origin origin_of(const void* pointer) {
  const found_place at{pointer};
  if (at.known) {
    const auto held = process_registry().find(at.known->what.base);
    return held ? pointer_origin{ref<context>{&held->home()}, ref<memory_resource>{held->from()}}
                : pointer_origin{};
  }
  if (at.block.first == nullptr) {
    return {};
  }
  auto owner = at.table().owner();
  return owner ? pointer_origin{ref<context>{&owner->home()}, std::move(owner)} : pointer_origin{};
}

request_facts request_of(const void* pointer) {
  auto* in = process_page_map.find(pointer);
  if (in == nullptr) {
    const auto known = process_registry().look(pointer);
    return known ? request_facts{known->what.nbytes, known->queue_key} : request_facts{};
  }
  auto* const first = in->is_slab() ? nullptr : first_of_run(in);
  if (first == nullptr || !first->is_live_run()) {
    return {};
  }
  auto& table = grain_table::of(first);
  const auto& origin = table.origin_of(table.number_of(first));
  return {origin.nbytes.load(k_relaxed), origin.queue_key.load(k_relaxed)};
}

}  // namespace isthmus
