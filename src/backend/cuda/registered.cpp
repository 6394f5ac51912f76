// SPDX-License-Identifier: Apache-2.0
// Pinning: registration of the caller's host memory with the driver.
//
// The driver registers a range of bytes once, for all devices, and does not report which code
// registered it. Registration takes 25 to 115 ms per GiB, unregistration 20 to 50 ms (H100; huge
// pages are the fastest).

#include "backend/cuda/current.hpp"
#include "backend/cuda/device.hpp"
#include "backend/cuda/pointer.hpp"
#include "core/sizes.hpp"

namespace isthmus::cuda {
namespace {

// Whether one registration covers the whole range. It does if both ends have the same base, since
// registrations do not overlap.
bool is_fully_registered(const Api& calls, const HostRange& range) noexcept {
  const auto first = query_pointer(calls, range.start);
  const auto last = query_pointer(calls, range.start + range.nbytes - 1);
  return first.kind == ISTHMUS_KIND_HOST && last.kind == ISTHMUS_KIND_HOST &&
         first.base == last.base;
}

// Whether the pages are not writable by the process, or do not exist.
bool is_protection_error(CUresult outcome) noexcept { return outcome == cu::k_error_INVALID_VALUE; }

const char* protection_advice(const Device& device, const HostRange& range) noexcept {
  if (!range.read_only) {
    return "or is read-only, which the caller must declare";
  }
  return device.traits().can_register_read_only
             ? "or is not readable"
             : "or is read-only, which this device cannot register: copy from it without pinning";
}

Error registration_failed(const Device& device, const HostRange& range, CUresult outcome) {
  const auto& filter = device.properties().filter;
  const auto nbytes = describe_bytes(range.nbytes);
  const auto* const address = static_cast<const void*>(range.start);
  switch (outcome) {
    case cu::k_error_HOST_MEMORY_ALREADY_REGISTERED:
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                  "a part of the {} at {} is registered with {} by other code ({}): pin memory "
                  "that lies entirely inside the registered range, or entirely outside of it",
                  nbytes, address, filter, code_name(outcome));
    case cu::k_error_OUT_OF_MEMORY:
    case cu::k_error_OPERATING_SYSTEM:
      return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
                  "{} did not register the {} at {}: {} ({}); the host has no memory left that can "
                  "be pinned, or the process may not pin so much (see `ulimit -l`): pin less",
                  filter, nbytes, address, code_name(outcome), outcome);
    default: break;
  }
  if (is_protection_error(outcome)) {
    return fail(
        range.read_only && !device.traits().can_register_read_only ? ISTHMUS_ERROR_UNSUPPORTED
                                                                   : ISTHMUS_ERROR_INVALID_ARGUMENT,
        "{} did not register the {} at {}: {} ({}); this is not memory of the process, {}", filter,
        nbytes, address, code_name(outcome), outcome, protection_advice(device, range));
  }
  return call_failed("cuMemHostRegister", outcome);
}

}  // namespace

// First tries to register memory declared read-only as writable, since it may be writable
// nevertheless, for example on the heap.
Result<bool> Device::register_host(const HostRange& range) {
  auto context = primary();
  ISTHMUS_TRY(context);
  const ContextGuard guard{calls_, *context};
  if (guard.outcome() != cu::k_success) {
    return call_failed("cuCtxSetCurrent", guard.outcome());
  }
  constexpr auto k_portable_mapped = cu::k_register_portable | cu::k_register_mapped;
  auto outcome = calls_.register_host(range.start, range.nbytes, k_portable_mapped);
  if (is_protection_error(outcome) && range.read_only && traits_.can_register_read_only) {
    outcome = calls_.register_host(range.start, range.nbytes,
                                   k_portable_mapped | cu::k_register_read_only);
  }
  if (outcome == cu::k_success) {
    return true;
  }
  if (outcome == cu::k_error_HOST_MEMORY_ALREADY_REGISTERED && is_fully_registered(calls_, range)) {
    return false;
  }
  return registration_failed(*this, range, outcome);
}

void Device::unregister_host(void* start) noexcept {
  const ContextGuard guard{calls_, primary_or_null()};
  if (guard.outcome() == cu::k_success) {
    calls_.unregister_host(start);
  }
}

}  // namespace isthmus::cuda
