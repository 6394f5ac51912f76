// SPDX-License-Identifier: Apache-2.0
#pragma once
// A SYCL device. Thread-safe.

#include <array>

#include "backend/device.hpp"
#include "backend/queue_table.hpp"
#include "backend/sycl/reference.hpp"
#include "core/mutex.hpp"

namespace isthmus::sycl {

// The next number of each device type, counted over all SYCL platforms, for filter strings.
using TypeNumbers = std::array<unsigned, ISTHMUS_DEVICE_ACCELERATOR + 1>;

// NOT_FOUND for a device without USM or of an unsupported type.
[[nodiscard]] Result<DeviceProperties> describe(const Api& calls, DeviceReference reference,
                                                TypeNumbers& numbers);

class Device final : public isthmus::Device {
 public:
  Device(isthmus::Platform& platform, const Api& calls, DeviceProperties properties,
         OwnedDevice reference)
      : isthmus::Device{platform, std::move(properties)},
        reference_{std::move(reference)},
        accepts_host_pointers_{calls.has_aspect(reference_.get(), dp::k_aspect_usm_system) &&
                               is_host()} {}

  [[nodiscard]] DeviceReference reference() const noexcept { return reference_.get(); }
  [[nodiscard]] void* native() const noexcept override { return reference_.get(); }
  // Whether the device's memory is the host's.
  [[nodiscard]] bool is_host() const noexcept { return properties().type == ISTHMUS_DEVICE_CPU; }
  [[nodiscard]] bool reaches_host_memory() const noexcept override {
    return accepts_host_pointers_;
  }
  [[nodiscard]] bool keeps_memory_on_host() const noexcept override { return is_host(); }
  // Queues by SYCL's hash, without the default queue.
  [[nodiscard]] QueueTable<std::size_t>& known_queues() noexcept { return known_queues_; }
  // Held from the lookup in `known_queues` until the addition to it, so that each queue is adopted
  // only once.
  [[nodiscard]] Mutex& adoption_lock() noexcept { return adoption_lock_; }
  // The machine's memory, for a CPU device. UNSUPPORTED for other devices, whose memory dpctl does
  // not report.
  [[nodiscard]] Result<MemoryInfo> memory() const override;

 private:
  OwnedDevice reference_;
  bool accepts_host_pointers_;
  Mutex adoption_lock_;
  QueueTable<std::size_t> known_queues_;
};

}  // namespace isthmus::sycl
