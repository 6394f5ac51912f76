// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies of many ranges by one kernel. 2,606 random pages of 4 KiB between the host and the device
// take 0.3 ms; with a copy for each page they take 6.6 ms (H100, bench/micro/ranges.cpp). The
// kernel accesses the host's pinned memory directly.
//
// The kernel reads the ranges from a list in pinned memory. The list's blocks are cached for later
// copies until the process ends, at most 32 MiB per device. cuMemcpyBatchAsync is never used: some
// of 23,676 copies were not performed, and with 55,122 the driver crashed (driver 580).

#include <mutex>
#include <vector>

#include "backend/cuda/api.hpp"
#include "backend/event.hpp"
#include "core/bytes.hpp"

namespace isthmus::cuda {

// An entry of a list, in the layout that the kernel reads.
struct RangeEntry {
  std::uint64_t destination;
  std::uint64_t source;
  std::uint64_t nbytes;
};

// The lists of one device. Thread-safe.
class RangeLists {
 public:
  static constexpr std::size_t k_entries_per_block = 10'920;  // in a block of 256 KiB
  static constexpr std::size_t k_max_blocks = 128;
  using Block = RangeEntry*;

  RangeLists();
  // Returns `count` blocks, or none if memory is exhausted or the limit is reached. Pre: the
  // device's context is current.
  [[nodiscard]] std::vector<Block> acquire(const Api& calls, std::size_t count);
  // Pre: no operation reads the blocks.
  void release(const std::vector<Block>& blocks) noexcept;
  // Returns the blocks to the cache once `reading` has completed.
  void release_after(std::vector<Block> blocks, Ref<Event> reading) noexcept;

 private:
  struct PendingBlocks {
    std::vector<Block> blocks;
    Ref<Event> reading;
  };
  [[nodiscard]] bool take_free(std::size_t count, std::vector<Block>& out);
  void recycle_completed();
  [[nodiscard]] Block allocate_block(const Api& calls) noexcept;

  std::mutex lock_;
  // The maximum capacity of both is reserved, so that returning blocks never fails.
  std::vector<Block> free_;
  std::vector<PendingBlocks> in_use_;
  std::size_t block_count_ = 0;
};

}  // namespace isthmus::cuda
