#include "memory/facts.hpp"

#include "memory/page_map.hpp"
#include "memory/pool.hpp"
#include "memory/pooled.hpp"
#include "memory/registry.hpp"

namespace isthmus {
namespace {

// Where a pointer leads, without a lock for pooled blocks that have no record. A block's record is
// that of all of it, also of what lies behind the bytes that its buffer was made with.
struct found_place {
  grain* in = nullptr;  // null: in no pool
  pooled_block block;
  ref<allocation> record;
  bool is_dying = false;  // its record is nobody's any more

  explicit found_place(const void* pointer) : in{process_page_map.find(pointer)} {
    if (in != nullptr) {
      block = block_holding(*in, pointer);
    }
    if (in == nullptr || (block.first != nullptr && block.first->is_recorded())) {
      auto& known = process_registry();
      record = in == nullptr ? known.find(pointer) : known.find_block(block.start);
      is_dying =
          !record && (in == nullptr ? known.is_dying(pointer) : known.is_dying_block(block.start));
    }
  }
  [[nodiscard]] grain_table& table() const noexcept { return grain_table::of(in); }
  [[nodiscard]] std::uintptr_t context_key() const noexcept {
    return record ? record->home().key() : table().common().context_key.load(k_relaxed);
  }
};

pointer_record record_in(allocation& known) {
  return {{known.what().kind, known.what().base, known.what().nbytes, &known.where()},
          &known.home(),
          known.from(),
          ISTHMUS_MEMORY_LIVE};
}

pointer_record record_in_pool(const found_place& at) noexcept {
  if (at.block.first == nullptr || at.is_dying) {
    return {{}, nullptr, nullptr, at.is_dying ? ISTHMUS_MEMORY_WAITING : ISTHMUS_MEMORY_FREE};
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
  if (at.in == nullptr && !at.record) {
    return record_elsewhere(asked, pointer, at.is_dying);
  }
  // Drivers take another context's pointer without a word (Intel's OpenCL runtime does): refuse it.
  if (asked != nullptr && at.context_key() != asked->key()) {
    return {};
  }
  return at.record ? record_in(*at.record) : record_in_pool(at);
}

pointer_facts facts_of(context& home, const void* pointer) {
  return record_of(&home, pointer).what;
}

pointer_origin origin_of(const void* pointer) {
  const found_place at{pointer};
  if (at.record) {
    return {ref<context>{&at.record->home()}, ref<memory_resource>{at.record->from()}};
  }
  if (at.block.first == nullptr || at.is_dying) {
    return {};
  }
  auto owner = at.table().owner();
  return owner ? pointer_origin{ref<context>{&owner->home()}, std::move(owner)} : pointer_origin{};
}

request_facts request_of(const void* pointer) {
  auto* in = process_page_map.find(pointer);
  if (in == nullptr) {
    const auto known = process_registry().find(pointer);
    return known ? request_facts{known->what().nbytes, known->on().key()} : request_facts{};
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
