#include "memory/facts.hpp"

#include "memory/registry.hpp"

namespace isthmus {
namespace {

pointer_facts facts_in(allocation& record) {
  return {record.what().kind, record.what().base, record.what().nbytes, &record.where()};
}

}  // namespace

pointer_facts facts_of(context& home, const void* pointer) {
  if (auto record = process_registry().find(pointer)) {
    // Drivers take another context's pointer without a word (Intel's OpenCL runtime does): refuse
    // it.
    return record->home().key() == home.key() ? facts_in(*record) : pointer_facts{};
  }
  auto told = home.query(pointer);
  if (told.kind == ISTHMUS_KIND_UNKNOWN && home.takes_host_memory() && pointer != nullptr) {
    told.kind = ISTHMUS_KIND_HOST;
  }
  return told;
}

pointer_facts facts_of(const void* pointer) {
  auto record = process_registry().find(pointer);
  return record ? facts_in(*record) : pointer_facts{};
}

}  // namespace isthmus
