// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies of many ranges by one kernel. 2,606 random pages of 4 KiB between the host and the device
// take 0.3 ms; with a copy for each page they take 6.6 ms (H100, bench/micro/ranges.cpp). The
// kernel accesses the host's pinned memory directly.
//
// The kernel reads the ranges from a list in pinned memory (range_lists.hpp). cuMemcpyBatchAsync is
// never used: some of 23,676 copies were not performed, and with 55,122 the driver crashed (driver
// 580).

#include <vector>

#include "backend/cuda/device.hpp"
#include "core/bytes.hpp"

namespace isthmus::cuda {

// The commands of one copy: launches of the kernel for short ranges, separate copies for long ones.
// `release_lists_after` may run while another thread runs `enqueue`; otherwise not thread-safe.
class RangePlan {
 public:
  // Writes the lists that the kernel reads. The device's context is current.
  RangePlan(Device& device, const RangedCopy& copy);

  // Submits the commands to a stream of the device. The device's context is current.
  [[nodiscard]] CUresult enqueue(CUstream stream) const noexcept;

  // Returns the lists to the device. No operation reads them.
  void release_lists() noexcept;
  // Returns the lists to the device once `reading` has completed.
  void release_lists_after(Ref<Event> reading) noexcept;

 private:
  // One launch of the kernel.
  struct Launch {
    RangeLists::Block list = nullptr;
    unsigned count = 0;
    unsigned threads_per_entry = k_threads_per_block;
  };
  class ListWriter;

  void write_lists(const RangedCopy& copy);
  [[nodiscard]] CUresult launch_kernel(const Launch& launch, CUstream stream) const noexcept;

  Device& device_;
  CUfunction function_ = nullptr;
  std::vector<Launch> launches_;
  std::vector<CopyRange> separate_;
  std::vector<RangeLists::Block> lists_;  // of the launches; empty if all ranges are separate
  CUdeviceptr destination_;
  CUdeviceptr source_;
};

}  // namespace isthmus::cuda
