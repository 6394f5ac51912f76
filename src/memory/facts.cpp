#include "memory/facts.hpp"

#include <optional>

#include "memory/page_map.hpp"
#include "memory/pooled.hpp"
#include "memory/registry.hpp"

namespace isthmus {
namespace {

pointer_facts facts_in(allocation& record) {
  return {record.what().kind, record.what().base, record.what().nbytes, &record.where()};
}

struct known_facts {
  pointer_facts what;
  std::uintptr_t context_key = 0;
};

known_facts facts_in_pool(const grain& in, const pooled_block& found) noexcept {
  if (found.first == nullptr) {
    return {};
  }
  const auto& common = grain_table::of(&in).common();
  return {{common.kind.load(k_relaxed), found.start, found.nbytes, common.where.load(k_relaxed)},
          common.context_key.load(k_relaxed)};
}

// None where it is no memory of ours. Without a lock for pooled blocks that have no record.
std::optional<known_facts> known_of(const void* pointer) {
  auto* in = process_page_map.find(pointer);
  const auto pooled = in == nullptr ? pooled_block{} : block_holding(*in, pointer);
  if (in == nullptr || (pooled.first != nullptr && pooled.first->is_recorded())) {
    if (auto record = process_registry().find(pointer)) {
      return known_facts{facts_in(*record), record->home().key()};
    }
    if (in != nullptr && process_registry().is_dying(pointer)) {
      return known_facts{};
    }
  }
  return in == nullptr ? std::nullopt : std::optional{facts_in_pool(*in, pooled)};
}

}  // namespace

pointer_facts facts_of(context& home, const void* pointer) {
  if (const auto known = known_of(pointer)) {
    // Drivers take another context's pointer without a word (Intel's OpenCL runtime does): refuse
    // it.
    return known->context_key == home.key() ? known->what : pointer_facts{};
  }
  auto told = home.query(pointer);
  if (told.kind == ISTHMUS_KIND_UNKNOWN && home.takes_host_memory() && pointer != nullptr) {
    told.kind = ISTHMUS_KIND_HOST;
  }
  return told;
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

pointer_facts facts_of(const void* pointer) {
  const auto known = known_of(pointer);
  return known ? known->what : pointer_facts{};
}

}  // namespace isthmus
