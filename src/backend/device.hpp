// SPDX-License-Identifier: Apache-2.0
#pragma once
// A device of a platform: its properties, capabilities and memory.
//
// Thread-safe. Properties do not change.

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "core/device_losses.hpp"
#include "core/ref.hpp"
#include "core/status.hpp"

namespace isthmus {

class Platform;
class Queue;

using UsmKind = isthmus_kind_t;

[[nodiscard]] const char* kind_name(UsmKind kind) noexcept;
// The flag of `capabilities` for a kind; 0 for an invalid kind.
[[nodiscard]] std::uint64_t kind_capability(UsmKind kind) noexcept;

struct DeviceProperties {
  std::string filter;  // "opencl:cpu:0"
  std::string name;
  std::string vendor;
  std::string driver_version;
  isthmus_device_type_t type = ISTHMUS_DEVICE_CPU;
  std::uint32_t compute_units = 0;
  std::uint32_t copy_engines = 0;
  std::uint64_t capabilities = 0;  // ISTHMUS_CAN_*
  std::uint64_t memory_bytes = 0;
  std::uint64_t max_allocation_bytes = 0;
  std::size_t base_alignment = 64;
  std::size_t max_alignment = 1;
  std::string pci_address;  // "0000:17:00.0"; empty if not reported
  std::string limitations;  // missing driver features and their substitutes
};

// Host memory of the caller.
struct HostRange {
  std::byte* start = nullptr;
  std::size_t nbytes = 0;
  bool read_only = false;  // the library does not write to it; it may be write-protected
};

struct MemoryInfo {
  std::uint64_t free_bytes = 0;
  std::uint64_t total_bytes = 0;
};

class Device : public RefCounted {
 public:
  // `platform` outlives the device, which becomes the platform's child by `Platform::add`.
  Device(Platform& platform, DeviceProperties properties);
  ~Device() override;

  [[nodiscard]] Platform& platform() const noexcept { return platform_; }
  [[nodiscard]] const DeviceProperties& properties() const noexcept { return properties_; }
  [[nodiscard]] bool can(std::uint64_t capability) const noexcept {
    return (properties_.capabilities & capability) == capability;
  }
  // Returns the free and total memory. UNSUPPORTED if the driver does not report them.
  [[nodiscard]] virtual Result<MemoryInfo> memory() const;
  [[nodiscard]] virtual void* native() const noexcept { return nullptr; }
  // Whether a copy of `nbytes` between pageable host memory in [first, last] and memory of this
  // device is faster through pinned memory than directly. The device memory may belong to any
  // context; the staged copy uses queues of the default context.
  [[nodiscard]] virtual bool copies_better_staged(const void* first, const void* last,
                                                  std::size_t nbytes,
                                                  bool to_device) const noexcept;

  // The same for scattered memory, which the host gathers before a single operation or scatters
  // after it.
  [[nodiscard]] virtual bool copies_ranges_better_staged(const void* first,
                                                         const void* last) const noexcept;

  // Whether the device's queues copy short runs at a constant stride about as fast as a single run
  // of as many bytes, also if the runs lie in pinned memory.
  [[nodiscard]] virtual bool copies_strided() const noexcept { return false; }

  // Whether kernels and copies of this device accept any host memory and process it as fast as the
  // device's own memory.
  [[nodiscard]] virtual bool reaches_host_memory() const noexcept { return false; }

  // Whether memory of device kind lies in host memory, so that copies by library threads are
  // cheaper than copy commands of the device.
  [[nodiscard]] virtual bool keeps_memory_on_host() const noexcept { return false; }

  // Whether pageable memory is copied faster once it is registered with the driver.
  [[nodiscard]] virtual bool registers_host_memory() const noexcept { return false; }
  // Registers exactly these bytes, not the rest of their pages, for all devices of the platform.
  // Returns false if another library has already registered all of them; that registration remains
  // unchanged. This library has registered nothing in the range. Errors: UNSUPPORTED,
  // OUT_OF_MEMORY, INVALID_ARGUMENT, DEVICE_LOST, DRIVER.
  [[nodiscard]] virtual Result<bool> register_host(const HostRange& range);
  // `register_host` returned true for this range, and no copy of it is in flight.
  virtual void unregister_host(void* start) noexcept;

  // Adds to the number of bytes of this kind, outside of pools, whose release to the driver is
  // pending on a library thread. A negative `nbytes` subtracts.
  void count_pending_release(UsmKind kind, std::int64_t nbytes) noexcept {
    release_counts(kind).pending += nbytes;
  }
  // Counts bytes whose pending release has completed.
  void count_released(UsmKind kind, std::int64_t nbytes) noexcept {
    release_counts(kind).released += static_cast<std::uint64_t>(nbytes);
    // Last, so that a thread that reads 0 pending bytes also reads the final released count.
    release_counts(kind).pending -= nbytes;
  }
  [[nodiscard]] bool has_pending_release(UsmKind kind) const noexcept {
    return release_counts(kind).pending > 0;
  }
  // Whether the loss of any device was reported since the last `note_alive`, or since construction
  // if there was none. The lost device may be this one. Costs two loads.
  [[nodiscard]] bool may_be_lost() const noexcept {
    return device_losses.load(std::memory_order_acquire) !=
           losses_ruled_out_.load(std::memory_order_relaxed);
  }
  // Records that the driver of this device has responded after `device_losses` had the value
  // `losses`.
  void note_alive(std::uint32_t losses) noexcept {
    losses_ruled_out_.store(losses, std::memory_order_relaxed);
  }
  // The total of `count_released` since construction.
  [[nodiscard]] std::uint64_t released_bytes(UsmKind kind) const noexcept {
    return release_counts(kind).released;
  }

 private:
  friend class Platform;
  Platform& platform_;
  DeviceProperties properties_;
  // Null until the platform, which owns the queue, has created it.
  std::atomic<Queue*> default_queue_{nullptr};
  std::atomic<std::uint32_t> losses_ruled_out_{device_losses.load(std::memory_order_acquire)};
  struct ReleaseCounts {
    std::atomic<std::int64_t> pending{0};
    std::atomic<std::uint64_t> released{0};
  };
  // Maps an invalid kind, which is rejected later, to the entry of UNKNOWN, which no release uses.
  [[nodiscard]] static std::size_t index_of(UsmKind kind) noexcept {
    return kind >= ISTHMUS_KIND_UNKNOWN && kind <= ISTHMUS_KIND_HOST
               ? static_cast<std::size_t>(kind)
               : std::size_t{ISTHMUS_KIND_UNKNOWN};
  }
  [[nodiscard]] ReleaseCounts& release_counts(UsmKind kind) noexcept {
    return release_counts_[index_of(kind)];
  }
  [[nodiscard]] const ReleaseCounts& release_counts(UsmKind kind) const noexcept {
    return release_counts_[index_of(kind)];
  }

  std::array<ReleaseCounts, ISTHMUS_KIND_HOST + 1> release_counts_{};
};

}  // namespace isthmus
