#include "memory/raw.hpp"

#include "memory/other_pools.hpp"
#include "memory/reaper.hpp"
#include "memory/reclaimers.hpp"
#include "memory/registry.hpp"

namespace isthmus {
namespace {

// Whether that memory goes back as it is, without a record.
bool goes_back_bare(memory_resource& from, const void* pointer, std::size_t nbytes) noexcept {
  return from.orders_frees() || from.giver_of(pointer, nbytes).orders_frees();
}

}  // namespace

result<void*> hand_out(memory_resource& from, std::size_t nbytes, std::size_t alignment,
                       queue& on) {
  let_much_go_on_demand();
  const auto refusals = driver_refusals;
  const auto ask = [&] { return from.allocate(nbytes, alignment, on); };
  auto memory = ask();
  if (is_short(memory)) {
    memory = with_all_pools({from.where(), from.kind(), nbytes, from.as_pool()}, refusals, ask,
                            std::move(memory));
  }
  if (!memory &&
      reclaimed_for(memory.failure(), from.where(), {from.kind(), nbytes, alignment}, &from)) {
    memory = ask();
  }
  if (!memory || goes_back_bare(from, *memory, nbytes)) {
    return memory;
  }
  auto made = allocation::take_over(on, {*memory, nbytes, alignment, from.kind()}, &from);
  ISTHMUS_TRY(made);
  (*made)->hold_by_pointer();
  return memory;
}

result<void> take_back(memory_resource& from, void* pointer, std::size_t nbytes, queue* behind) {
  if (goes_back_bare(from, pointer, nbytes)) {
    return from.deallocate(pointer, nbytes, behind);
  }
  const auto known = process_registry().find(pointer, from);
  if (!known) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "{} is no memory of this resource's, or was freed before", pointer);
  }
  return take_back_recorded(*known, pointer, behind);
}

result<void> take_back_recorded(allocation& known, const void* pointer, queue* behind) noexcept {
  const auto* const base = known.what().base;
  if (base != pointer) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "{} lies inside the allocation at {}: free the pointer that was allocated", pointer,
                base);
  }
  if (!known.drop_pointer(behind)) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "{} was freed before, or belongs to a buffer: free that", pointer);
  }
  return {};
}

}  // namespace isthmus
