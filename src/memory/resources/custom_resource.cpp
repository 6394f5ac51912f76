// SPDX-License-Identifier: Apache-2.0
#include "memory/resources/custom_resource.hpp"

#include "core/sizes.hpp"
#include "core/threads.hpp"
#include "memory/base/driver_serves_thread.hpp"
#include "memory/base/other_pools.hpp"
#include "memory/records/facts.hpp"
#include "memory/resources/users_error.hpp"

namespace isthmus {
namespace {

// A handle is the object's address as a pointer to an opaque type.
isthmus_queue_t* handle_of(Queue* queue) noexcept {
  return reinterpret_cast<isthmus_queue_t*>(queue);
}

}  // namespace

Result<void> CustomResource::check(const void* pointer, const AllocationRequest& request) noexcept
    try {
  if (pointer == nullptr) {
    return fail(ISTHMUS_ERROR_CALLBACK,
                "a custom resource returned NULL without an error for a request of {}",
                describe_bytes(request.nbytes));
  }
  if (address(pointer) % request.alignment != 0) {
    return fail(ISTHMUS_ERROR_CALLBACK,
                "a custom resource returned {}, which is not aligned to {}, for a request of {}",
                pointer, request.alignment, describe_bytes(request.nbytes));
  }
  return check_location(facts_of(context(), pointer), pointer, request);
} catch (const std::bad_alloc&) {
  return Error::no_memory();
}

Result<void> CustomResource::check_location(const PointerFacts& facts, const void* pointer,
                                            const AllocationRequest& request) {
  if (facts.kind == ISTHMUS_KIND_UNKNOWN) {
    return fail(ISTHMUS_ERROR_CALLBACK,
                "a custom resource returned {}, which is not memory of its context on {}", pointer,
                device().properties().filter);
  }
  if (facts.kind != request.kind) {
    return fail(ISTHMUS_ERROR_CALLBACK,
                "a custom resource of {} memory returned {}, which is {} memory",
                kind_name(request.kind), pointer, kind_name(facts.kind));
  }
  if (facts.kind != ISTHMUS_KIND_HOST && facts.device != nullptr && facts.device != &device()) {
    return fail(ISTHMUS_ERROR_CALLBACK,
                "a custom resource for {} returned {}, which is memory of {}",
                device().properties().filter, pointer, facts.device->properties().filter);
  }
  if (facts.nbytes != 0 &&
      !lies_within(address(pointer) - address(facts.base), request.nbytes, facts.nbytes)) {
    return fail(ISTHMUS_ERROR_CALLBACK,
                "a custom resource returned {}, from which {} run past the end of the allocation, "
                "{} at {}",
                pointer, describe_bytes(request.nbytes), describe_bytes(facts.nbytes), facts.base);
  }
  return {};
}

Result<void*> CustomResource::allocate(std::size_t nbytes, std::size_t alignment, Queue& queue) {
  const AllocationRequest request{
      kind(), nbytes, alignment != 0 ? alignment : device().properties().base_alignment};
  if (auto bad = context().check(device(), request)) {
    return bad;
  }
  void* pointer = nullptr;
  const char* message = nullptr;
  const auto status = [&] {
    const DriverServesThread driver_serves;
    return operations_.allocate(owner_.object(), nbytes, request.alignment, handle_of(&queue),
                                &pointer, &message);
  }();
  if (status != ISTHMUS_OK) {
    if (status == ISTHMUS_ERROR_OUT_OF_MEMORY) {
      ++driver_refusals;
      driver_refused_bytes = nbytes;
    }
    return callback_error("a custom resource", status, message);
  }
  auto checked = check(pointer, request);
  if (checked) {
    return pointer;
  }
  if (pointer != nullptr) {
    const DriverServesThread driver_serves;
    operations_.deallocate(owner_.object(), pointer, nbytes, handle_of(&queue));
  }
  return checked.take_error();
}

Result<void> CustomResource::deallocate(void* pointer, std::size_t nbytes, Queue* after) noexcept {
  const SignalsOfStarter signals;
  const DriverServesThread driver_serves;
  operations_.deallocate(owner_.object(), pointer, nbytes, handle_of(after));
  return {};
}

MemoryResource::MemoryUsage CustomResource::usage() noexcept {
  MemoryUsage result;
  if (operations_.usage != nullptr) {
    const DriverServesThread driver_serves;
    operations_.usage(owner_.object(), &result.held_bytes, &result.free_bytes);
  }
  return result;
}

std::size_t CustomResource::trim(std::size_t keep) noexcept {
  const DriverServesThread driver_serves;
  return operations_.trim != nullptr ? operations_.trim(owner_.object(), keep) : 0;
}

}  // namespace isthmus
