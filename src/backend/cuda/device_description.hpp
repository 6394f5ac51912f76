// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a CUDA device and its driver can do, as the driver's attributes report it. Thread-safe.

#include "backend/cuda/api.hpp"
#include "backend/device.hpp"

namespace isthmus::cuda {

struct DeviceTraits {
  int max_pitch = 0;
  bool virtual_memory = false;
  bool host_virtual_memory = false;
  int host_numa_node = -1;  // of the host memory nearest to the device; -1: unknown
  bool can_register_read_only = false;
  bool rdma_with_virtual_memory = false;  // remappable memory can support RDMA
};

struct DeviceDescription {
  DeviceProperties properties;
  DeviceTraits traits;
};

// NOT_FOUND for a device that this library cannot use.
[[nodiscard]] Result<DeviceDescription> describe(const Api& calls, CUdevice index);

}  // namespace isthmus::cuda
