// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counts the host memory that drivers have allocated, and refuses requests beyond what is
// available. Drivers overcommit host memory; touching pages that cannot be backed invokes the OOM
// killer.

#include <atomic>
#include <cstddef>

#include "backend/context.hpp"
#include "os/available_memory.hpp"

namespace isthmus {

// The total memory for a kind on a device: that of the device, or the host memory that the process
// may use.
[[nodiscard]] std::size_t memory_for(const Device& device, UsmKind kind);

// Thread-safe.
class HostMemory {
 public:
  // Limits reservations to `total` bytes altogether, and at any time to the memory that `bounds`
  // reports as available.
  HostMemory(const os::MemoryBounds& bounds, std::size_t total) noexcept
      : bounds_{bounds}, total_{total} {}
  // The instance of the process.
  [[nodiscard]] static HostMemory& only();

  // Whether memory of a kind lies in host memory: the shared and host kinds always do, the device
  // kind does on CPU devices.
  [[nodiscard]] static bool is_host_memory(const Device& device, UsmKind kind) noexcept;

  // Called before the driver allocates memory for which `is_host_memory` is true. Fails with
  // OUT_OF_MEMORY, without counting anything.
  [[nodiscard]] Result<void> reserve(const Device& device, const AllocationRequest& request);
  void release(const Device& device, std::size_t nbytes) noexcept;

 private:
  [[nodiscard]] Result<void> check_available(const Device& device,
                                             const AllocationRequest& request);
  void unreserve(const Device& device, std::size_t nbytes) noexcept;
  void count_device_owned(const Device& device, std::size_t more) noexcept;
  [[nodiscard]] bool take_from_allowance(std::size_t nbytes) noexcept;

  const os::MemoryBounds& bounds_;
  const std::size_t total_;
  std::atomic<std::size_t> reserved_{0};
  // The part of `reserved_` for devices other than CPUs, which is not in pages of this process.
  std::atomic<std::size_t> device_owned_{0};
  // The bytes that requests may still reserve before the next `check_available`.
  std::atomic<std::size_t> allowance_{0};
};

}  // namespace isthmus
