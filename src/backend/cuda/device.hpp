// SPDX-License-Identifier: Apache-2.0
#pragma once
// A CUDA device and its primary context, which it shares with the runtime API and thus with all
// other code in the process. Thread-safe.

#include <atomic>
#include <mutex>

#include "backend/cuda/api.hpp"
#include "backend/cuda/event_cache.hpp"
#include "backend/cuda/kernel.hpp"
#include "backend/cuda/ranges.hpp"
#include "backend/cuda/ranges_kernel_ptx.hpp"
#include "backend/cuda/strided_kernel_ptx.hpp"
#include "backend/device.hpp"
#include "backend/queue_table.hpp"

namespace isthmus::cuda {

struct device_traits {
  int max_pitch = 0;
  bool virtual_memory = false;
  bool host_virtual_memory = false;
  int host_node = -1;  // the NUMA node of host memory nearest to it; -1: unknown
  bool registers_read_only = false;
  bool rdma_of_virtual_memory = false;  // whether it can be created with support for RDMA
};

struct device_description {
  device_properties properties;
  device_traits traits;
};

// NOT_FOUND for a device that this library cannot use.
[[nodiscard]] result<device_description> describe(const api& calls, ordinal index);

class device final : public isthmus::device {
 public:
  device(isthmus::platform& home, const api& calls, device_description description, ordinal index)
      : isthmus::device{home, std::move(description.properties)},
        traits_{description.traits},
        calls_{calls},
        index_{index} {}

  [[nodiscard]] const api& calls() const noexcept { return calls_; }
  [[nodiscard]] const device_traits& traits() const noexcept { return traits_; }
  [[nodiscard]] ordinal index() const noexcept { return index_; }
  [[nodiscard]] queue_table<stream_handle>& streams() noexcept { return streams_; }
  // Created at the first call, which takes some 0.1 s and some 500 MiB of device memory, and kept
  // until the process ends.
  [[nodiscard]] result<context_handle> primary() const;
  // Pre: `primary` has succeeded.
  [[nodiscard]] context_handle known_primary() const noexcept {
    return primary_.load(std::memory_order_acquire);
  }
  [[nodiscard]] result<memory_info> memory() const override;
  [[nodiscard]] bool copies_better_staged(const void* first, const void* last, std::size_t nbytes,
                                          bool to_device) const noexcept override;
  [[nodiscard]] bool registers_host_memory() const noexcept override { return true; }
  [[nodiscard]] result<bool> register_host(const host_range& what) override;
  void unregister_host(void* start) noexcept override;
  [[nodiscard]] bool copies_pieces_better_staged(const void* first,
                                                 const void* last) const noexcept override;
  [[nodiscard]] bool copies_strided() const noexcept override;
  [[nodiscard]] kernel& ranges_kernel() noexcept { return ranges_kernel_; }
  [[nodiscard]] range_lists& lists_of_ranges() noexcept { return lists_of_ranges_; }
  [[nodiscard]] kernel& strided_kernel() noexcept { return strided_kernel_; }
  // Whether kernels may access `nbytes` at this address directly. Host memory may be pinned by
  // other code in part only. Pre: a context of the device is current.
  [[nodiscard]] bool kernels_reach(const void* pointer, std::size_t nbytes) const noexcept;
  // Whether the driver does not know the pointer. Pre: the primary context exists.
  [[nodiscard]] bool is_hosts_own(const void* pointer) const noexcept;
  [[nodiscard]] event_cache& events() const noexcept { return events_; }

  // Counts managed memory against the free memory: more than the card has free can hang it.
  // Allocated managed memory counts in full, since it may not be resident yet. False if there is
  // not enough.
  [[nodiscard]] bool claim_managed(std::size_t nbytes, std::size_t free_bytes) noexcept;
  void unclaim_managed(std::size_t nbytes) noexcept {
    managed_bytes_.fetch_sub(nbytes, std::memory_order_relaxed);
  }

 private:
  device_traits traits_;
  const api& calls_;
  ordinal index_;
  mutable event_cache events_;
  mutable kernel ranges_kernel_{k_ranges_ptx, "isthmus_copy_ranges"};
  mutable kernel strided_kernel_{k_strided_ptx, "isthmus_copy_strided"};
  range_lists lists_of_ranges_;
  mutable std::mutex making_;
  // Created under `making_`, then stored with release; readers load it with acquire.
  mutable std::atomic<context_handle> primary_{nullptr};
  std::atomic<std::size_t> managed_bytes_{0};
  queue_table<stream_handle> streams_;
};

}  // namespace isthmus::cuda
