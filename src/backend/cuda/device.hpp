// SPDX-License-Identifier: Apache-2.0
#pragma once
// A CUDA device and its primary context, which it shares with the runtime API and thus with all
// other code in the process. Thread-safe.

#include <atomic>

#include "backend/cuda/api.hpp"
#include "backend/cuda/device_description.hpp"
#include "backend/cuda/event_cache.hpp"
#include "backend/cuda/kernel.hpp"
#include "backend/cuda/range_lists.hpp"
#include "backend/cuda/ranges_kernel_ptx.hpp"
#include "backend/cuda/strided_kernel_ptx.hpp"
#include "backend/device.hpp"
#include "backend/queue_table.hpp"
#include "core/mutex.hpp"

namespace isthmus::cuda {

class Device final : public isthmus::Device {
 public:
  Device(isthmus::Platform& platform, const Api& calls, DeviceDescription description,
         CUdevice index)
      : isthmus::Device{platform, std::move(description.properties)},
        traits_{description.traits},
        calls_{calls},
        index_{index} {}

  // The device of a CUDA platform with this index; null if there is none.
  [[nodiscard]] static Device* find(const isthmus::Platform& platform, CUdevice index) noexcept;

  [[nodiscard]] const Api& calls() const noexcept { return calls_; }
  [[nodiscard]] const DeviceTraits& traits() const noexcept { return traits_; }
  [[nodiscard]] CUdevice index() const noexcept { return index_; }
  [[nodiscard]] QueueTable<CUstream>& streams() noexcept { return streams_; }
  // Returns the primary context. The first call creates it, which takes about 0.1 s and 500 MiB of
  // device memory. It is retained until the process ends.
  [[nodiscard]] Result<CUcontext> primary() const;
  // Returns null if no call of `primary` has succeeded yet.
  [[nodiscard]] CUcontext primary_or_null() const noexcept {
    return primary_.load(std::memory_order_acquire);
  }
  [[nodiscard]] Result<MemoryInfo> memory() const override;
  [[nodiscard]] bool copies_better_staged(const void* first, const void* last, std::size_t nbytes,
                                          bool to_device) const noexcept override;
  [[nodiscard]] bool registers_host_memory() const noexcept override { return true; }
  [[nodiscard]] Result<bool> register_host(const HostRange& range) override;
  void unregister_host(void* start) noexcept override;
  [[nodiscard]] bool copies_ranges_better_staged(const void* first,
                                                 const void* last) const noexcept override;
  [[nodiscard]] bool copies_strided() const noexcept override;
  [[nodiscard]] Kernel& ranges_kernel() noexcept { return ranges_kernel_; }
  [[nodiscard]] RangeLists& range_lists() noexcept { return range_lists_; }
  [[nodiscard]] Kernel& strided_kernel() noexcept { return strided_kernel_; }
  // Whether kernels may access `nbytes` at this address directly. Other code may have pinned only
  // part of that host memory. A context of the device is current.
  [[nodiscard]] bool kernels_can_access(const void* pointer, std::size_t nbytes) const noexcept;
  // Whether the pointer is unknown to the driver. The primary context exists.
  [[nodiscard]] bool is_pageable(const void* pointer) const noexcept;
  [[nodiscard]] EventCache& events() const noexcept { return events_; }

  // Reserves part of the free memory for a managed allocation, since allocating more managed memory
  // than the device has free can hang it. Allocated managed memory counts in full, since it may not
  // be resident yet. Returns false if too little memory is free.
  [[nodiscard]] bool claim_managed(std::size_t nbytes, std::size_t free_bytes) noexcept;
  void unclaim_managed(std::size_t nbytes) noexcept {
    managed_bytes_.fetch_sub(nbytes, std::memory_order_relaxed);
  }

 private:
  DeviceTraits traits_;
  const Api& calls_;
  CUdevice index_;
  mutable EventCache events_;
  mutable Kernel ranges_kernel_{k_ranges_ptx, "isthmus_copy_ranges"};
  mutable Kernel strided_kernel_{k_strided_ptx, "isthmus_copy_strided"};
  RangeLists range_lists_;
  mutable Mutex primary_lock_;
  // Created under `primary_lock_`, then stored with release; readers load it with acquire.
  mutable std::atomic<CUcontext> primary_{nullptr};
  std::atomic<std::size_t> managed_bytes_{0};
  QueueTable<CUstream> streams_;
};

}  // namespace isthmus::cuda
