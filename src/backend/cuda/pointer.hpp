// SPDX-License-Identifier: Apache-2.0
#pragma once
// Queries the driver about a pointer. Thread-safe.

#include "backend/cuda/api.hpp"
#include "backend/device.hpp"

namespace isthmus::cuda {

struct PointerAttributes {
  UsmKind kind = ISTHMUS_KIND_UNKNOWN;  // also for pageable memory
  void* base = nullptr;
  std::size_t nbytes = 0;
  CUdevice device = 0;
};

// Takes 0.08 us. A context is current.
[[nodiscard]] inline PointerAttributes query_pointer(const Api& calls,
                                                     const void* pointer) noexcept {
  unsigned attribute_ids[] = {cu::k_pointer_memory_type, cu::k_pointer_is_managed,
                              cu::k_pointer_device_ordinal, cu::k_pointer_range_start,
                              cu::k_pointer_range_size};
  unsigned type = 0;
  unsigned managed = 0;
  PointerAttributes attributes;
  CUdeviceptr base = 0;
  void* values[] = {&type, &managed, &attributes.device, &base, &attributes.nbytes};
  if (calls.pointer_attributes(5, attribute_ids, values, to_deviceptr(pointer)) != 0) {
    return {};
  }
  attributes.base = to_pointer(base);
  if (managed != 0) {
    attributes.kind = ISTHMUS_KIND_SHARED;
  } else if (type == cu::k_memory_host) {
    attributes.kind = ISTHMUS_KIND_HOST;
  } else if (type == cu::k_memory_device) {
    attributes.kind = ISTHMUS_KIND_DEVICE;
  }
  return attributes;
}

}  // namespace isthmus::cuda
