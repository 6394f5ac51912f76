// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/device.hpp"

#include <algorithm>

#include "backend/call_of_any_thread.hpp"
#include "backend/cuda/current.hpp"
#include "backend/cuda/pointer.hpp"
#include "backend/platform.hpp"
#include "core/lock_guard.hpp"
#include "core/sizes.hpp"
#include "os/process.hpp"

namespace isthmus::cuda {
namespace {

// From these sizes on, a copy of pageable memory takes longer with the driver's staging than with
// the library's. Times with the driver's and the library's staging (H100): to the device 30 and 35
// us for 256 KiB, 100 and 92 us for 1 MiB; from the device 98 and 116 us for 1 MiB, 334 and 232 us
// for 4 MiB.
constexpr std::size_t k_min_staged_to_device = std::size_t{512} << 10;
constexpr std::size_t k_min_staged_from_device = std::size_t{2} << 20;

}  // namespace

Device* Device::find(const isthmus::Platform& platform, CUdevice index) noexcept {
  const auto all = platform.devices();
  const auto found = std::find_if(all.begin(), all.end(), [=](const auto& member) {
    return static_cast<const Device&>(*member).index() == index;
  });
  return found != all.end() ? static_cast<Device*>(found->get()) : nullptr;
}

Result<CUcontext> Device::primary() const {
  if (os::drivers_unavailable()) {
    return driver_unavailable_error();
  }
  if (auto* existing = primary_or_null()) {
    return existing;
  }
  const LockGuard hold{primary_lock_};
  if (auto* existing = primary_or_null()) {
    return existing;
  }
  CUcontext context = nullptr;
  if (const auto outcome = calls_.retain_primary(&context, index_); outcome != cu::k_success) {
    return call_failed("cuDevicePrimaryCtxRetain", outcome);
  }
  primary_.store(context, std::memory_order_release);
  return context;
}

Result<MemoryInfo> Device::memory() const {
  auto context = primary();
  ISTHMUS_TRY(context);
  const ContextGuard guard{calls_, *context};
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  auto outcome = guard.outcome();
  if (outcome == cu::k_success) {
    outcome = calls_.memory_info(&free_bytes, &total_bytes);
  }
  if (outcome != cu::k_success) {
    return call_failed("cuMemGetInfo", outcome);
  }
  return MemoryInfo{free_bytes, total_bytes};
}

bool Device::claim_managed(std::size_t nbytes, std::size_t free_bytes) noexcept {
  auto claimed = managed_bytes_.load(std::memory_order_relaxed);
  do {
    if (claimed > free_bytes || nbytes > free_bytes - claimed) {
      return false;
    }
  } while (
      !managed_bytes_.compare_exchange_weak(claimed, claimed + nbytes, std::memory_order_relaxed));
  return true;
}

bool Device::is_pageable(const void* pointer) const noexcept {
  const ContextGuard guard{calls_, primary_or_null()};
  return query_pointer(calls_, pointer).kind == ISTHMUS_KIND_UNKNOWN;
}

// Memory that is only partly registered counts as pageable.
bool Device::copies_better_staged(const void* first, const void* last, std::size_t nbytes,
                                  bool to_device) const noexcept {
  return nbytes >= (to_device ? k_min_staged_to_device : k_min_staged_from_device) &&
         (is_pageable(first) || is_pageable(last));
}

bool Device::copies_ranges_better_staged(const void* first, const void* last) const noexcept {
  const ContextGuard guard{calls_, primary_or_null()};
  return (is_pageable(first) || is_pageable(last)) &&
         ranges_kernel_.get_function(calls_) != nullptr;
}

bool Device::copies_strided() const noexcept {
  const ContextGuard guard{calls_, primary_or_null()};
  return guard.outcome() == cu::k_success && strided_kernel_.get_function(calls_) != nullptr;
}

bool Device::kernels_can_access(const void* pointer, std::size_t nbytes) const noexcept {
  const auto attributes = query_pointer(calls_, pointer);
  if (attributes.kind == ISTHMUS_KIND_UNKNOWN ||
      (attributes.kind == ISTHMUS_KIND_DEVICE && attributes.device != index_) ||
      (attributes.kind == ISTHMUS_KIND_HOST &&
       !lies_within(address(pointer) - address(attributes.base), nbytes, attributes.nbytes))) {
    return false;
  }
  unsigned attribute_id = cu::k_pointer_device_pointer;
  CUdeviceptr device_pointer = 0;
  void* value = &device_pointer;
  return calls_.pointer_attributes(1, &attribute_id, &value, to_deviceptr(pointer)) ==
             cu::k_success &&
         device_pointer == to_deviceptr(pointer);
}

}  // namespace isthmus::cuda
