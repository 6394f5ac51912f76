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
isthmus_queue_t* handle_of(Queue* queue) noexcept {
  return reinterpret_cast<isthmus_queue_t*>(queue);
}

}  // namespace

Result<void> CustomResource::check(const void* pointer, const AllocationRequest& asked) noexcept
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
  return check_place(facts_of(context(), pointer), pointer, asked);
} catch (const std::bad_alloc&) {
  return Error::no_memory();
}

Result<void> CustomResource::check_place(const PointerFacts& known, const void* pointer,
                                         const AllocationRequest& asked) {
  if (known.kind == ISTHMUS_KIND_UNKNOWN) {
    return fail(ISTHMUS_ERROR_CALLBACK,
                "a custom resource returned {}, which is not memory of its context on {}", pointer,
                device().properties().filter);
  }
  if (known.kind != asked.kind) {
    return fail(ISTHMUS_ERROR_CALLBACK,
                "a custom resource of {} memory returned {}, which is {} memory",
                kind_name(asked.kind), pointer, kind_name(known.kind));
  }
  if (known.kind != ISTHMUS_KIND_HOST && known.device != nullptr && known.device != &device()) {
    return fail(ISTHMUS_ERROR_CALLBACK,
                "a custom resource for {} returned {}, which is memory of {}",
                device().properties().filter, pointer, known.device->properties().filter);
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

Result<void*> CustomResource::allocate(std::size_t nbytes, std::size_t alignment, Queue& queue) {
  const AllocationRequest asked{kind(), nbytes,
                                alignment != 0 ? alignment : device().properties().base_alignment};
  if (auto bad = context().check(device(), asked)) {
    return bad;
  }
  void* pointer = nullptr;
  const char* message = nullptr;
  const auto told = [&] {
    const DriverServesThread meanwhile;
    return how_.allocate(keep_.object(), nbytes, asked.alignment, handle_of(&queue), &pointer,
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
    how_.deallocate(keep_.object(), pointer, nbytes, handle_of(&queue));
  }
  return checked.take_error();
}

Result<void> CustomResource::deallocate(void* pointer, std::size_t nbytes, Queue* behind) noexcept {
  const SignalsOfStarter as_on_theirs;
  const DriverServesThread meanwhile;
  how_.deallocate(keep_.object(), pointer, nbytes, handle_of(behind));
  return {};
}

MemoryResource::MemoryUsage CustomResource::usage() noexcept {
  MemoryUsage now;
  if (how_.usage != nullptr) {
    const DriverServesThread meanwhile;
    how_.usage(keep_.object(), &now.held_bytes, &now.free_bytes);
  }
  return now;
}

std::size_t CustomResource::trim(std::size_t keep) noexcept {
  const DriverServesThread meanwhile;
  return how_.trim != nullptr ? how_.trim(keep_.object(), keep) : 0;
}

}  // namespace isthmus
