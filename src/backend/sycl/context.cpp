// SPDX-License-Identifier: Apache-2.0
#include "backend/sycl/context.hpp"

#include <algorithm>

#include "backend/platform.hpp"
#include "backend/sycl/errors.hpp"
#include "backend/sycl/event.hpp"
#include "backend/sycl/queue.hpp"
#include "core/lock_guard.hpp"
#include "core/sizes.hpp"
#include "os/process.hpp"

namespace isthmus::sycl {
namespace {

// dpctl's functions accept pointers to memory as opaque references.
MemoryReference as_reference(const void* pointer) noexcept {
  return static_cast<MemoryReference>(const_cast<void*>(pointer));
}

Error not_allocated(const isthmus::Device& device, const AllocationRequest& request) {
  const auto& properties = device.properties();
  return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
              "{} did not allocate {} of {} memory aligned to {}; it has {} in total, its largest "
              "single allocation is {}",
              properties.filter, describe_bytes(request.nbytes), kind_name(request.kind),
              request.alignment, describe_bytes(properties.memory_bytes),
              describe_bytes(properties.max_allocation_bytes));
}

}  // namespace

// dpctl propagates an exception if the device of a pointer of another context is queried.
PointerFacts Context::query(const void* pointer) noexcept {
  PointerFacts facts;
  if (os::drivers_unavailable()) {
    return facts;
  }
  switch (call_safely(calls().pointer_type, as_reference(pointer), reference())) {
    case dp::k_usm_device: facts.kind = ISTHMUS_KIND_DEVICE; break;
    case dp::k_usm_shared: facts.kind = ISTHMUS_KIND_SHARED; break;
    case dp::k_usm_host: facts.kind = ISTHMUS_KIND_HOST; break;
    default: return facts;
  }
  const OwnedDevice device{calls(),
                           call_safely(calls().pointer_device, as_reference(pointer), reference())};
  facts.device = platform().device_of(device.get());
  return facts;
}

Result<OwnedQueue> Context::open_queue(const Device& device) const {
  OwnedQueue queue{calls(),
                   calls().make_queue(reference(), device.reference(), nullptr, dp::k_in_order)};
  if (!queue) {
    return call_failed("sycl::queue");
  }
  return queue;
}

Result<QueueReference> Context::allocator_of(const Device& device) {
  const LockGuard hold{allocators_lock_};
  for (const auto& [allocator_device, allocator] : allocators_) {
    if (allocator_device == &device) {
      return allocator.get();
    }
  }
  auto queue = open_queue(device);
  ISTHMUS_TRY(queue);
  allocators_.emplace_back(&device, *std::move(queue));
  return allocators_.back().second.get();
}

Result<void*> Context::do_allocate(isthmus::Device& device, const AllocationRequest& request) {
  auto queue = allocator_of(static_cast<const Device&>(device));
  ISTHMUS_TRY(queue);
  const auto allocate = request.kind == ISTHMUS_KIND_DEVICE   ? calls().allocate_device
                        : request.kind == ISTHMUS_KIND_SHARED ? calls().allocate_shared
                                                              : calls().allocate_host;
  auto* const memory = call_safely(allocate, request.alignment, request.nbytes, *queue);
  if (memory != nullptr && address(memory) % request.alignment != 0) {
    call_safely(calls().free, memory, reference());
  } else if (memory != nullptr) {
    return static_cast<void*>(memory);
  }
  return not_allocated(device, request);
}

void Context::do_deallocate(void* pointer, UsmKind, std::size_t) noexcept {
  if (const CallOfAnyThread counted; counted) {
    call_safely(calls().free, as_reference(pointer), reference());
  }
}

Result<Ref<isthmus::Queue>> Context::make_queue(isthmus::Device& device, bool platform_owned) {
  auto& member = static_cast<Device&>(device);
  auto native_queue = open_queue(member);
  ISTHMUS_TRY(native_queue);
  auto queue = make_ref<Queue>(*this, calls(), member, *std::move(native_queue), platform_owned);
  if (!platform_owned) {  // an exported handle may be adopted later
    member.known_queues().add(queue->key(), *queue);
  }
  return Ref<isthmus::Queue>{std::move(queue)};
}

Result<void*> Context::retain_opencl() const {
  if (calls().context_backend(reference()) != dp::k_backend_opencl) {
    return fail(ISTHMUS_ERROR_UNSUPPORTED, "this SYCL context is not built on OpenCL");
  }
  if (calls().context_native == nullptr) {
    return fail(ISTHMUS_ERROR_UNSUPPORTED,
                "this version of the SYCL library does not expose native handles");
  }
  const auto handle = call_safely(calls().context_native, reference());
  if (handle == 0) {
    return call_failed("sycl::context::getNative");
  }
  return reinterpret_cast<void*>(handle);
}

Result<Ref<Event>> Context::adopt_event(void* native, Owner owner) {
  if (native == nullptr) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "a null pointer is not a sycl::event");
  }
  OwnedEvent copied{calls(), calls().copy_event(static_cast<EventReference>(native))};
  if (!copied) {
    return call_failed("sycl::event");
  }
  auto operation = make_ref<Operation>(*this, calls(), std::move(owner));
  operation->submitted(std::move(copied));
  return Ref<Event>{std::move(operation)};
}

}  // namespace isthmus::sycl
