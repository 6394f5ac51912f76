// SPDX-License-Identifier: Apache-2.0
#pragma once
// A device of an OpenCL driver: its properties, and how operations are submitted to it. Immutable,
// so thread-safe.

#include <array>

#include "backend/device.hpp"
#include "backend/opencl/api.hpp"

namespace isthmus::opencl {

// Properties that determine how the driver must be used. Queried when the device is listed.
struct DeviceTraits {
  bool usm = false;
  bool svm = false;
  // The device's memory is the host's: library code can access memory of device kind directly. With
  // `native_kernels`, it can do so in queue order.
  bool is_host = false;
  bool native_kernels = false;
  bool accepts_host_pointers = false;  // kernels accept any host pointer
  // On an in-order queue a failed user event terminates only the commands that wait for it. True
  // for Intel's CPU runtime. PoCL 3.1 terminates all commands queued after the event. Both crash on
  // out-of-order queues.
  bool ends_dependents = false;
  // The device's queues must be drained before the driver is unloaded (workarounds/exit_drain.hpp).
  bool needs_drain_at_exit = false;
};

struct DeviceDescription {
  DeviceProperties properties;
  DeviceTraits traits;
};

// The next number of each device type, counted over all OpenCL platforms, for filter strings.
using TypeNumbers = std::array<unsigned, ISTHMUS_DEVICE_ACCELERATOR + 1>;

struct PlatformFacts {
  bool is_intel = false;
  bool has_svm = false;  // OpenCL 2.0 or later, with all SVM functions
};

// NOT_FOUND for a device that is unavailable or of a type that this library cannot use.
[[nodiscard]] Result<DeviceDescription> describe(const Api& calls, const PlatformFacts& facts,
                                                 cl_device_id handle, TypeNumbers& numbers);

class Device final : public isthmus::Device {
 public:
  Device(isthmus::Platform& platform, DeviceDescription description, cl_device_id handle)
      : isthmus::Device{platform, std::move(description.properties)},
        traits_{description.traits},
        handle_{handle} {}

  [[nodiscard]] const DeviceTraits& traits() const noexcept { return traits_; }
  [[nodiscard]] cl_device_id handle() const noexcept { return handle_; }
  [[nodiscard]] void* native() const noexcept override { return handle_; }
  [[nodiscard]] bool reaches_host_memory() const noexcept override {
    return traits_.accepts_host_pointers;
  }
  // Reports the memory of the machine if the device is the host. OpenCL itself cannot report free
  // memory.
  [[nodiscard]] Result<MemoryInfo> memory() const override;

 private:
  DeviceTraits traits_;
  cl_device_id handle_;
};

}  // namespace isthmus::opencl
