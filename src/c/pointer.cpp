// What is known of a pointer, and what is done with the memory behind it.

#include <cstddef>

#include "c/common.hpp"
#include "memory/adaptors/tracking_resource.hpp"
#include "memory/facts.hpp"
#include "memory/pooled.hpp"
#include "os/process.hpp"

using namespace isthmus;
using namespace isthmus::c;

namespace {

// The header's first form, which many were compiled with.
constexpr auto k_first_info_bytes = offsetof(isthmus_pointer_info_t, requested_bytes);

void tell(const pointer_facts& known, isthmus_pointer_info_t& info) noexcept {
  info.kind = known.kind;
  info.base = known.base;
  info.nbytes = known.nbytes;
  info.device = known.home == nullptr ? nullptr : handle(known.home);
}

// Where the caller has room for it.
void tell_tracked(const block_note& noted, isthmus_pointer_info_t& info) noexcept {
  if (info.struct_size >= offsetof(isthmus_pointer_info_t, queue_key)) {
    info.requested_bytes = noted.nbytes;
  }
  if (info.struct_size >= sizeof info) {
    info.queue_key = noted.queue;
  }
}

block_note tracked(const pointer_facts& known, const void* pointer) noexcept {
  block_note noted{};
  if (known.kind != ISTHMUS_KIND_UNKNOWN && !tracking_resource::find_anywhere(pointer, noted) &&
      known.base != nullptr) {
    static_cast<void>(tracking_resource::find_anywhere(known.base, noted));
  }
  return noted;
}

[[gnu::noinline]] isthmus_status_t query_cold(isthmus_context_t* context, const void* pointer,
                                              isthmus_pointer_info_t* info) noexcept {
  return guarded([&]() -> result<void> {
    ISTHMUS_NEEDS(info);
    if (info->struct_size < k_first_info_bytes) {
      return is_too_small("info", info->struct_size, k_first_info_bytes);
    }
    if (os::is_forked_child()) {
      return refuse_child();
    }
    const auto known = context == nullptr ? facts_of(pointer) : facts_of(*object(context), pointer);
    tell(known, *info);
    tell_tracked(tracked(known, pointer), *info);
    return {};
  });
}

}  // namespace

isthmus_status_t isthmus_pointer_query(isthmus_context_t* context, const void* pointer,
                                       isthmus_pointer_info_t* info) noexcept {
  if (info != nullptr && info->struct_size >= k_first_info_bytes && !os::is_forked_child() &&
      !tracking_resource::is_any()) [[likely]] {
    const auto found = bare_block_holding(pointer);
    if (found.common != nullptr &&
        (context == nullptr || object(context)->key() == found.common->context_key.load(k_relaxed)))
        [[likely]] {
      tell({found.common->kind.load(k_relaxed), found.start, found.nbytes,
            found.common->where.load(k_relaxed)},
           *info);
      tell_tracked({}, *info);
      return ISTHMUS_OK;
    }
  }
  return query_cold(context, pointer, info);
}

namespace {

result<void> record(const void* pointer, const ref<event>& ended) {
  auto known = allocation_at(pointer);
  ISTHMUS_TRY(known);
  if (!*known) {
    return fail(ISTHMUS_ERROR_NOT_FOUND, "{} is no memory of the library's", pointer);
  }
  auto& uses = (*known)->uses();
  uses.add({0, {0, (*known)->what().nbytes}, true}, ended, uses.begin());
  return {};
}

}  // namespace

isthmus_status_t isthmus_record_event(const void* pointer, isthmus_event_t* event) noexcept {
  return guarded([&]() -> result<void> {
    if (os::is_forked_child()) {
      return refuse_child();
    }
    ISTHMUS_NEEDS(event);
    return record(pointer, ref<isthmus::event>{object(event)});
  });
}

isthmus_status_t isthmus_record_queue(const void* pointer, isthmus_queue_t* queue) noexcept {
  return guarded([&]() -> result<void> {
    ISTHMUS_NEEDS(queue);
    auto reached = object(queue)->fence({});
    ISTHMUS_TRY(reached);
    return record(pointer, *reached);
  });
}
