// SPDX-License-Identifier: Apache-2.0
#include "backend/context.hpp"

#include <algorithm>

#include "core/expects.hpp"
#include "core/sizes.hpp"
#include "os/process.hpp"

namespace isthmus {
namespace {

Error check_alignment(const DeviceProperties& properties, std::size_t alignment) {
  if (!is_power_of_two(alignment)) {
    return fail(
        ISTHMUS_ERROR_INVALID_ARGUMENT,
        "alignment {} is not a power of two: use 1, 2, 4 ... {}, or 0 for the default of {}",
        alignment, properties.max_alignment, properties.base_alignment);
  }
  if (alignment > properties.max_alignment) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "alignment {} exceeds the maximum of {}, which is {}: use a smaller alignment",
                alignment, properties.filter, properties.max_alignment);
  }
  return {};
}

AllocationRequest with_alignment(const Device& device, AllocationRequest request) {
  if (request.alignment == 0) {
    request.alignment = device.properties().base_alignment;
  }
  return request;
}

Error check_request(const Device& device, const AllocationRequest& request) {
  ISTHMUS_EXPECTS(request.alignment != 0);
  const auto& properties = device.properties();
  const auto capability = kind_capability(request.kind);
  if (capability == 0) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "{} is not a USM kind: use device (1), shared (2) or host (3)", request.kind);
  }
  if (!device.can(capability)) {
    return fail(ISTHMUS_ERROR_UNSUPPORTED,
                "{} has no {} memory{}{}: use a kind that its capabilities include",
                properties.filter, kind_name(request.kind),
                properties.limitations.empty() ? "" : "; ", properties.limitations);
  }
  if (request.write_combined &&
      (request.kind != ISTHMUS_KIND_HOST || !device.can(ISTHMUS_CAN_WRITE_COMBINE))) {
    return fail(ISTHMUS_ERROR_UNSUPPORTED,
                "{} has no write-combined {} memory: use host memory of a device with the "
                "capability \"write_combine\"",
                properties.filter, kind_name(request.kind));
  }
  if (auto error = check_alignment(properties, request.alignment)) {
    return error;
  }
  if (request.nbytes > properties.max_allocation_bytes) {
    return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
                "cannot allocate {} of {} memory on {}: its largest single allocation is {}",
                describe_bytes(request.nbytes), kind_name(request.kind), properties.filter,
                describe_bytes(properties.max_allocation_bytes));
  }
  return {};
}

}  // namespace

Context::Context(std::vector<Device*> devices, Platform* owning_platform)
    : RefCounted{owning_platform != nullptr ? devices.front() : nullptr},
      devices_{std::move(devices)} {
  if (owning_platform == nullptr) {
    device_ref_ = Ref<Device>{devices_.front()};
  }
}

Context::~Context() = default;

bool Context::has(const Device& candidate) const noexcept {
  return std::find(devices_.begin(), devices_.end(), &candidate) != devices_.end();
}

std::uintptr_t Context::key() const noexcept { return address(this); }

Error Context::check(const Device& device, const AllocationRequest& request) const {
  return check_request(device, with_alignment(device, request));
}

Result<void*> Context::allocate(Device& device, const AllocationRequest& request) {
  if (os::is_forked_child()) {
    return fail(ISTHMUS_ERROR_FORKED,
                "a forked child cannot allocate on {}: start the child with "
                "spawn, or allocate before the fork",
                device.properties().filter);
  }
  const auto aligned_request = with_alignment(device, request);
  if (auto error = check_request(device, aligned_request)) {
    return error;
  }
  ISTHMUS_EXPECTS(request.nbytes > 0);
  return do_allocate(device, aligned_request);
}

void Context::deallocate(void* pointer, UsmKind kind, std::size_t nbytes) noexcept {
  if (!os::drivers_unavailable()) {
    do_deallocate(pointer, kind, nbytes);
  }
}

namespace {

Error ipc_unsupported(const Device& device) {
  return fail(ISTHMUS_ERROR_UNSUPPORTED,
              "{} cannot share memory with other processes: use a device with the capability "
              "\"ipc\"",
              device.properties().filter);
}

}  // namespace

Result<void*> Context::retain_opencl() const {
  return fail(ISTHMUS_ERROR_UNSUPPORTED, "a context of {} is not built on OpenCL",
              devices_.front()->properties().filter);
}

Result<SharedAllocation> Context::share_memory(const void*) {
  return ipc_unsupported(*devices_.front());
}
Result<void*> Context::open_memory(Device& device, const IpcHandle&) {
  return ipc_unsupported(device);
}
void Context::close_memory(Device&, void*) noexcept {}

Result<Ref<Event>> Context::adopt_event(void*, Owner) {
  return fail(ISTHMUS_ERROR_UNSUPPORTED, "a context of {} does not adopt events",
              devices_.front()->properties().filter);
}

}  // namespace isthmus
