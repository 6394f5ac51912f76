// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/context.hpp"

#include <algorithm>

#include "backend/cuda/current.hpp"
#include "backend/cuda/pointer.hpp"
#include "backend/cuda/queue.hpp"
#include "core/lock_guard.hpp"
#include "core/sizes.hpp"
#include "core/undo.hpp"
#include "os/process.hpp"

namespace isthmus::cuda {
namespace {

CUresult allocate_from_driver(const Api& calls, const AllocationRequest& request,
                              void*& pointer) noexcept {
  const auto nbytes = request.nbytes;
  CUdeviceptr device_pointer = 0;
  switch (request.kind) {
    case ISTHMUS_KIND_HOST:
      return calls.allocate_host(&pointer, nbytes,
                                 cu::k_host_portable | cu::k_host_mapped |
                                     (request.write_combined ? cu::k_host_write_combined : 0));
    case ISTHMUS_KIND_SHARED: {
      const auto outcome = calls.allocate_managed(&device_pointer, nbytes, cu::k_attach_global);
      pointer = to_pointer(device_pointer);
      return outcome;
    }
    default: {
      const auto outcome = calls.allocate_device(&device_pointer, nbytes);
      pointer = to_pointer(device_pointer);
      return outcome;
    }
  }
}

Error allocation_failed(const Device& device, UsmKind kind, std::size_t nbytes, CUresult outcome) {
  if (outcome != cu::k_error_OUT_OF_MEMORY) {
    return call_failed("an allocation", outcome);
  }
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  static_cast<void>(device.calls().memory_info(&free_bytes, &total_bytes));
  return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
              "{} did not allocate {} of {} memory: {} ({}); it has {} free",
              device.properties().filter, describe_bytes(nbytes), kind_name(kind),
              code_name(outcome), outcome, describe_bytes(free_bytes));
}

Error exceeds_free_memory(const Device& device, std::size_t nbytes, std::size_t free_bytes) {
  return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
              "cannot allocate {} of shared memory on {}: with the existing shared memory it would "
              "exceed the {} that are free, which can hang the device; use the host kind, or "
              "allocate less",
              describe_bytes(nbytes), device.properties().filter, describe_bytes(free_bytes));
}

}  // namespace

Context::Context(std::vector<isthmus::Device*> members, isthmus::Platform* platform_owner)
    : isthmus::Context{std::move(members), platform_owner} {
  for (auto* member : devices()) {
    const auto& cuda_device = static_cast<Device&>(*member);
    chunk_sources_.push_back(
        {Chunks::of_device(cuda_device), Chunks::of_host(cuda_device, devices())});
  }
}

// Prefers a device whose context exists, since creating a context takes device memory.
Device& Context::any_device() const noexcept {
  const auto initialized = std::find_if(devices().begin(), devices().end(), [](const auto* member) {
    return static_cast<const Device*>(member)->primary_or_null() != nullptr;
  });
  return static_cast<Device&>(initialized != devices().end() ? **initialized : *devices().front());
}

void* Context::native() const noexcept {
  auto primary = static_cast<Device&>(*devices().front()).primary();
  return primary ? *primary : nullptr;
}

PointerFacts Context::query(const void* pointer) noexcept {
  const auto& device = any_device();
  auto primary = device.primary();
  if (!primary) {
    return {};
  }
  const ContextGuard guard{device.calls(), *primary};
  const auto attributes = query_pointer(device.calls(), pointer);
  if (attributes.kind == ISTHMUS_KIND_UNKNOWN) {
    return {};
  }
  return {
      attributes.kind, attributes.base, attributes.nbytes,
      attributes.kind == ISTHMUS_KIND_HOST ? nullptr : Device::find(platform(), attributes.device)};
}

ChunkSource* Context::chunks(isthmus::Device& device, UsmKind kind) noexcept {
  const auto found = std::find(devices().begin(), devices().end(), &device);
  if (found == devices().end()) {
    return nullptr;
  }
  const auto& sources = chunk_sources_.at(static_cast<std::size_t>(found - devices().begin()));
  switch (kind) {
    case ISTHMUS_KIND_DEVICE: return sources.of_device.get();
    case ISTHMUS_KIND_HOST:
      return sources.of_host != nullptr && sources.of_host->can_create() ? sources.of_host.get()
                                                                         : nullptr;
    default: return nullptr;
  }
}

// The device's context is current.
Result<void*> Context::obtain(Device& device, const AllocationRequest& request) {
  const auto& calls = device.calls();
  const auto kind = request.kind;
  const auto nbytes = request.nbytes;
  if (kind == ISTHMUS_KIND_SHARED) {
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    if (const auto outcome = calls.memory_info(&free_bytes, &total_bytes);
        outcome != cu::k_success) {
      return call_failed("cuMemGetInfo", outcome);
    }
    if (!device.claim_managed(nbytes, free_bytes)) {
      return exceeds_free_memory(device, nbytes, free_bytes);
    }
  }
  void* pointer = nullptr;
  if (const auto outcome = allocate_from_driver(calls, request, pointer);
      outcome != cu::k_success) {
    if (kind == ISTHMUS_KIND_SHARED) {
      device.unclaim_managed(nbytes);
    }
    return allocation_failed(device, kind, nbytes, outcome);
  }
  return pointer;
}

Result<void*> Context::obtain_overaligned(Device& device, const AllocationRequest& request) {
  const auto nbytes = request.nbytes + request.alignment - 1;
  auto base = obtain(device, {request.kind, nbytes, 0, request.write_combined});
  ISTHMUS_TRY(base);
  auto* const aligned = static_cast<std::byte*>(*base) +
                        (round_up(address(*base), request.alignment) - address(*base));
  try {
    const LockGuard hold{overaligned_lock_};
    overaligned_.emplace(aligned, DriverAllocation{*base, nbytes});
  } catch (const std::bad_alloc&) {
    free_allocation(device, *base, request.kind, nbytes);
    return Error::no_memory();
  }
  overaligned_count_.fetch_add(1, std::memory_order_relaxed);
  return aligned;
}

Result<void*> Context::do_allocate(isthmus::Device& device, const AllocationRequest& request) {
  auto& cuda_device = static_cast<Device&>(device);
  auto primary = cuda_device.primary();
  ISTHMUS_TRY(primary);
  const ContextGuard guard{cuda_device.calls(), *primary};
  if (guard.outcome() != cu::k_success) {
    return call_failed("cuCtxSetCurrent", guard.outcome());
  }
  auto pointer = obtain(cuda_device, request);
  if (!pointer || address(*pointer) % request.alignment == 0) {
    return pointer;
  }
  free_allocation(cuda_device, *pointer, request.kind, request.nbytes);
  return obtain_overaligned(cuda_device, request);
}

// The device's context is current.
void Context::free_allocation(Device& device, void* pointer, UsmKind kind,
                              std::size_t nbytes) noexcept {
  if (kind == ISTHMUS_KIND_HOST) {
    device.calls().free_host(pointer);
    return;
  }
  device.calls().free_device(to_deviceptr(pointer));
  if (kind == ISTHMUS_KIND_SHARED) {
    device.unclaim_managed(nbytes);
  }
}

void Context::do_deallocate(void* pointer, UsmKind kind, std::size_t nbytes) noexcept {
  auto& fallback = any_device();
  const auto& calls = fallback.calls();
  const ContextGuard query_guard{calls, fallback.primary_or_null()};
  const auto attributes = query_pointer(calls, pointer);
  auto* const owner =
      kind == ISTHMUS_KIND_HOST ? nullptr : Device::find(platform(), attributes.device);
  auto& device = owner != nullptr ? *owner : fallback;
  if (overaligned_count_.load(std::memory_order_relaxed) != 0) {
    const LockGuard hold{overaligned_lock_};
    if (auto entry = overaligned_.extract(pointer)) {
      pointer = entry.mapped().base;
      nbytes = entry.mapped().nbytes;
      overaligned_count_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  const ContextGuard guard{calls, device.primary_or_null()};
  free_allocation(device, pointer, kind, nbytes);
}

Result<Ref<isthmus::Queue>> Context::make_queue(isthmus::Device& device, bool platform_owned) {
  auto& cuda_device = static_cast<Device&>(device);
  auto primary = cuda_device.primary();
  ISTHMUS_TRY(primary);
  if (platform_owned) {
    return Ref<isthmus::Queue>{make_ref<cuda::Queue>(*this, cuda_device, legacy_stream(), true)};
  }
  const ContextGuard guard{cuda_device.calls(), *primary};
  CUstream stream = nullptr;
  const auto outcome = guard.outcome() != cu::k_success
                           ? guard.outcome()
                           : cuda_device.calls().create_stream(&stream, cu::k_stream_non_blocking);
  if (outcome != cu::k_success) {
    return call_failed("cuStreamCreate", outcome);
  }
  Undo cleanup{[&] { cuda_device.calls().destroy_stream(stream); }};
  Ref<isthmus::Queue> queue{make_ref<cuda::Queue>(*this, cuda_device, stream, false)};
  cleanup.dismiss();
  cuda_device.streams().add(stream, *queue);
  return queue;
}

}  // namespace isthmus::cuda
