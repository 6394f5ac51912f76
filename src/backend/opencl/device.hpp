// SPDX-License-Identifier: Apache-2.0
#pragma once
// A device of an OpenCL driver: its properties, and how operations are submitted to it. Immutable,
// so thread-safe.

#include <array>

#include "backend/device.hpp"
#include "backend/opencl/api.hpp"

namespace isthmus::opencl {

// How the driver must be used, determined when the device is listed.
struct device_traits {
  bool usm = false;
  bool svm = false;
  // Its memory is the host's: our own code can access what the driver calls device memory. In queue
  // order this is done by native kernels, where the driver has them.
  bool is_host = false;
  bool native_kernels = false;
  bool takes_host_memory = false;  // kernels accept any host pointer
  // On an in-order queue a failed user event ends what waits for it and nothing else. True for
  // Intel's CPU runtime. PoCL 3.1 ends everything queued after it. Both crash on out-of-order
  // queues.
  bool ends_dependents = false;
  // Its queues must be drained before the driver is torn down (farewell.hpp).
  bool wants_farewell = false;
};

struct device_description {
  device_properties properties;
  device_traits traits;
};

// The next number of each device type, counted over all OpenCL platforms, for filter strings.
using type_numbers = std::array<unsigned, ISTHMUS_DEVICE_ACCELERATOR + 1>;

struct platform_facts {
  bool is_intel = false;
  bool has_svm = false;  // OpenCL 2.0 or later, and its functions were found
};

// NOT_FOUND for a device that is unavailable or of a type that this library cannot use.
[[nodiscard]] result<device_description> describe(const api& calls, const platform_facts& home,
                                                  device_handle handle, type_numbers& numbers);

class device final : public isthmus::device {
 public:
  device(isthmus::platform& home, device_description description, device_handle handle)
      : isthmus::device{home, std::move(description.properties)},
        traits_{description.traits},
        handle_{handle} {}

  [[nodiscard]] const device_traits& traits() const noexcept { return traits_; }
  [[nodiscard]] device_handle handle() const noexcept { return handle_; }
  [[nodiscard]] void* native() const noexcept override { return handle_; }
  [[nodiscard]] bool reaches_host_memory() const noexcept override {
    return traits_.takes_host_memory;
  }
  // If the device is the host, the memory of the machine. OpenCL itself cannot report free memory.
  [[nodiscard]] result<memory_info> memory() const override;

 private:
  device_traits traits_;
  device_handle handle_;
};

}  // namespace isthmus::opencl
