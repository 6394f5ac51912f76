// SPDX-License-Identifier: Apache-2.0
#include "backend/opencl/context.hpp"

#include <algorithm>

#include "backend/opencl/errors.hpp"
#include "backend/opencl/queue.hpp"
#include "backend/platform.hpp"
#include "core/lock_guard.hpp"
#include "core/sizes.hpp"
#include "os/process.hpp"

namespace isthmus::opencl {
namespace {

// The largest alignment that SVM must support. Drivers often refuse larger ones without an error
// code.
constexpr std::size_t k_svm_alignment = 128;

UsmKind kind_of(cl_unified_shared_memory_type_intel type) noexcept {
  switch (type) {
    case CL_MEM_TYPE_DEVICE_INTEL: return ISTHMUS_KIND_DEVICE;
    case CL_MEM_TYPE_SHARED_INTEL: return ISTHMUS_KIND_SHARED;
    case CL_MEM_TYPE_HOST_INTEL: return ISTHMUS_KIND_HOST;
    default: return ISTHMUS_KIND_UNKNOWN;
  }
}

Error not_allocated(const isthmus::Device& device, const AllocationRequest& request,
                    cl_int outcome) {
  const auto& properties = device.properties();
  const auto status =
      is_out_of_memory(outcome) ? ISTHMUS_ERROR_OUT_OF_MEMORY : call_failed("", outcome).code();
  return fail(status,
              "{} did not allocate {} of {} memory aligned to {}: {} ({}); it has {} in total, its "
              "largest single allocation is {}",
              properties.filter, describe_bytes(request.nbytes), kind_name(request.kind),
              request.alignment, code_name(outcome), outcome,
              describe_bytes(properties.memory_bytes),
              describe_bytes(properties.max_allocation_bytes));
}

}  // namespace

Context::~Context() {
  if (!os::drivers_unavailable()) {
    calls().release_context(native_.handle);
  }
}

std::uintptr_t Context::key() const noexcept { return address(native_.handle); }

PointerFacts Context::query(const void* pointer) noexcept {
  const auto get_info = calls().get_allocation;
  PointerFacts facts;
  if (get_info == nullptr || os::drivers_unavailable()) {
    return facts;  // SVM cannot be queried
  }
  cl_unified_shared_memory_type_intel type = 0;
  if (get_info(native_.handle, pointer, CL_MEM_ALLOC_TYPE_INTEL, sizeof type, &type, nullptr) !=
      CL_SUCCESS) {
    return facts;
  }
  facts.kind = kind_of(type);
  if (facts.kind == ISTHMUS_KIND_UNKNOWN) {
    return facts;
  }
  cl_device_id device = nullptr;
  get_info(native_.handle, pointer, CL_MEM_ALLOC_BASE_PTR_INTEL, sizeof(void*), &facts.base,
           nullptr);
  get_info(native_.handle, pointer, CL_MEM_ALLOC_SIZE_INTEL, sizeof facts.nbytes, &facts.nbytes,
           nullptr);
  get_info(native_.handle, pointer, CL_MEM_ALLOC_DEVICE_INTEL, sizeof(cl_device_id), &device,
           nullptr);
  facts.device = device != nullptr ? platform().device_of(device) : nullptr;
  return facts;
}

void* Context::allocate_usm(const Device& device, UsmKind kind, std::size_t nbytes,
                            std::size_t alignment, cl_int& outcome) const noexcept {
  const auto aligned = static_cast<cl_uint>(alignment);
  switch (kind) {
    case ISTHMUS_KIND_DEVICE:
      return calls().allocate_device(native_.handle, device.handle(), nullptr, nbytes, aligned,
                                     &outcome);
    case ISTHMUS_KIND_SHARED:
      return calls().allocate_shared(native_.handle, device.handle(), nullptr, nbytes, aligned,
                                     &outcome);
    default: return calls().allocate_host(native_.handle, nullptr, nbytes, aligned, &outcome);
  }
}

// Returns null if memory is exhausted or the driver does not support the alignment.
void* Context::allocate_native(const Device& device, UsmKind kind, std::size_t nbytes,
                               std::size_t alignment, cl_int& outcome) noexcept {
  void* pointer = nullptr;
  if (device.traits().usm) {
    pointer = allocate_usm(device, kind, nbytes, alignment, outcome);
  } else if (alignment <= k_svm_alignment) {
    const cl_svm_mem_flags fine_grained =
        kind == ISTHMUS_KIND_SHARED ? CL_MEM_SVM_FINE_GRAIN_BUFFER : 0;
    pointer = calls().allocate_svm(native_.handle, CL_MEM_READ_WRITE | fine_grained, nbytes,
                                   static_cast<cl_uint>(alignment));
    outcome = pointer != nullptr ? CL_SUCCESS : CL_MEM_OBJECT_ALLOCATION_FAILURE;
  } else {
    outcome = CL_INVALID_VALUE;
  }
  if (pointer != nullptr && alignment != 0 && address(pointer) % alignment != 0) {
    free_native(pointer);
    pointer = nullptr;
    outcome = CL_INVALID_VALUE;
  }
  return pointer;
}

void* Context::allocate_padded(const Device& device, const AllocationRequest& request,
                               cl_int& outcome) {
  auto* start = static_cast<std::byte*>(
      allocate_native(device, request.kind, request.nbytes + request.alignment - 1, 0, outcome));
  if (start == nullptr) {
    return nullptr;
  }
  auto* aligned = start + (round_up(address(start), request.alignment) - address(start));
  const LockGuard hold{padded_lock_};
  padded_.emplace(aligned, start);
  padded_count_.fetch_add(1, std::memory_order_relaxed);
  return aligned;
}

Result<void*> Context::do_allocate(isthmus::Device& device, const AllocationRequest& request) {
  const auto& cl_device = static_cast<const Device&>(device);
  cl_int outcome = CL_SUCCESS;
  void* pointer =
      allocate_native(cl_device, request.kind, request.nbytes, request.alignment, outcome);
  if (pointer == nullptr && outcome == CL_INVALID_VALUE) {
    pointer = allocate_padded(cl_device, request, outcome);
  }
  if (pointer == nullptr) {
    return not_allocated(device, request, outcome);
  }
  return pointer;
}

// Queries the driver only if some devices of the context have USM and others do not.
bool Context::is_usm(const void* pointer) noexcept {
  const auto has_usm = [](const auto* member) {
    return static_cast<const Device*>(member)->traits().usm;
  };
  if (std::all_of(devices().begin(), devices().end(), has_usm)) {
    return true;
  }
  return std::any_of(devices().begin(), devices().end(), has_usm) &&
         query(pointer).kind != ISTHMUS_KIND_UNKNOWN;
}

void Context::free_native(void* pointer) noexcept {
  if (is_usm(pointer)) {
    calls().free_usm(native_.handle, pointer);
  } else {
    calls().free_svm(native_.handle, pointer);
  }
}

void Context::do_deallocate(void* pointer, UsmKind, std::size_t) noexcept {
  if (os::drivers_unavailable()) {
    return;
  }
  if (padded_count_.load(std::memory_order_relaxed) != 0) {
    const LockGuard hold{padded_lock_};
    if (auto node = padded_.extract(pointer)) {
      pointer = node.mapped();
      padded_count_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  free_native(pointer);
}

Result<Ref<isthmus::Queue>> Context::make_queue(isthmus::Device& device, bool platform_owned) {
  auto& member = static_cast<Device&>(device);
  cl_int outcome = CL_SUCCESS;
  // Profiling has no measurable cost on Intel's runtime and PoCL.
  auto* queue =
      calls().create_queue(native_.handle, member.handle(), CL_QUEUE_PROFILING_ENABLE, &outcome);
  if (queue == nullptr) {
    return call_failed("clCreateCommandQueue", outcome);
  }
  return Ref<isthmus::Queue>{
      make_ref<opencl::Queue>(*this, native_, member, queue, platform_owned)};
}

}  // namespace isthmus::opencl
