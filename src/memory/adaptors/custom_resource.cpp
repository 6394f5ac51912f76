// SPDX-License-Identifier: Apache-2.0
#include "memory/adaptors/custom_resource.hpp"

#include "core/sizes.hpp"
#include "core/threads.hpp"
#include "memory/adaptors/users_error.hpp"
#include "memory/default_pools.hpp"
#include "memory/facts.hpp"
#include "memory/other_pools.hpp"

namespace isthmus {
namespace {

// A handle is the object's address as a pointer to an opaque type.
isthmus_queue_t* handle_of(queue* on) noexcept { return reinterpret_cast<isthmus_queue_t*>(on); }

}  // namespace

result<void> custom_resource::check(const void* pointer, const allocation_request& asked) noexcept
    try {
  if (pointer == nullptr) {
    return fail(ISTHMUS_ERROR_CALLBACK, "a custom resource returned NULL for {}, and no error",
                describe_bytes(asked.nbytes));
  }
  if (address(pointer) % asked.alignment != 0) {
    return fail(ISTHMUS_ERROR_CALLBACK,
                "a custom resource returned {}, which is not aligned to {}, for {}", pointer,
                asked.alignment, describe_bytes(asked.nbytes));
  }
  return check_place(facts_of(home(), pointer), pointer, asked);
} catch (const std::bad_alloc&) {
  return error::no_memory();
}

result<void> custom_resource::check_place(const pointer_facts& known, const void* pointer,
                                          const allocation_request& asked) {
  if (known.kind == ISTHMUS_KIND_UNKNOWN) {
    return fail(ISTHMUS_ERROR_CALLBACK,
                "a custom resource returned {}, which is not memory of its context on {}", pointer,
                where().properties().filter);
  }
  if (known.kind != asked.kind) {
    return fail(ISTHMUS_ERROR_CALLBACK,
                "a custom resource of {} memory returned {}, which is {} memory",
                kind_name(asked.kind), pointer, kind_name(known.kind));
  }
  if (known.kind != ISTHMUS_KIND_HOST && known.home != nullptr && known.home != &where()) {
    return fail(ISTHMUS_ERROR_CALLBACK,
                "a custom resource for {} returned {}, which is memory of {}",
                where().properties().filter, pointer, known.home->properties().filter);
  }
  if (known.nbytes != 0 &&
      !lies_within(address(pointer) - address(known.base), asked.nbytes, known.nbytes)) {
    return fail(ISTHMUS_ERROR_CALLBACK,
                "a custom resource returned {} for {}, which run past the end of their allocation, "
                "{} at {}",
                pointer, describe_bytes(asked.nbytes), describe_bytes(known.nbytes), known.base);
  }
  return {};
}

result<void*> custom_resource::allocate(std::size_t nbytes, std::size_t alignment, queue& on) {
  const allocation_request asked{kind(), nbytes,
                                 alignment != 0 ? alignment : where().properties().base_alignment};
  if (auto bad = home().check(where(), asked)) {
    return bad;
  }
  void* pointer = nullptr;
  const char* message = nullptr;
  const auto told = [&] {
    const driver_serves_thread meanwhile;
    return how_.allocate(keep_.object(), nbytes, asked.alignment, handle_of(&on), &pointer,
                         &message);
  }();
  if (told != ISTHMUS_OK) {
    if (told == ISTHMUS_ERROR_OUT_OF_MEMORY) {
      ++driver_refusals;
      driver_refused_bytes = nbytes;
    }
    return users_error("a custom resource", told, message);
  }
  auto checked = check(pointer, asked);
  if (checked) {
    return pointer;
  }
  if (pointer != nullptr) {
    how_.deallocate(keep_.object(), pointer, nbytes, handle_of(&on));
  }
  return checked.take_error();
}

result<void> custom_resource::deallocate(void* pointer, std::size_t nbytes,
                                         queue* behind) noexcept {
  const signals_of_starter as_on_theirs;
  const driver_serves_thread meanwhile;
  how_.deallocate(keep_.object(), pointer, nbytes, handle_of(behind));
  return {};
}

memory_resource::memory_usage custom_resource::usage() noexcept {
  memory_usage now;
  if (how_.usage != nullptr) {
    const driver_serves_thread meanwhile;
    how_.usage(keep_.object(), &now.held_bytes, &now.free_bytes);
  }
  return now;
}

std::size_t custom_resource::trim(std::size_t keep) noexcept {
  const driver_serves_thread meanwhile;
  return how_.trim != nullptr ? how_.trim(keep_.object(), keep) : 0;
}

}  // namespace isthmus
