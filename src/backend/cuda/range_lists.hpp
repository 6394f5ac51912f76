// SPDX-License-Identifier: Apache-2.0
#pragma once
// The lists from which a kernel reads the ranges that it copies, in pinned memory. Their blocks are
// cached for later copies until the process ends, at most 32 MiB per device.

#include <vector>

#include "backend/cuda/api.hpp"
#include "backend/event.hpp"
#include "core/mutex.hpp"
#include "core/thread_safety.hpp"

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
  // Returns `count` blocks, or none if memory is exhausted or the limit is reached. The
  // device's context is current.
  [[nodiscard]] std::vector<Block> acquire(const Api& calls, std::size_t count);
  // No operation reads the blocks.
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

  Mutex lock_;
  // The maximum capacity of both is reserved, so that returning blocks never fails.
  std::vector<Block> free_ ISTHMUS_GUARDED_BY(lock_);
  std::vector<PendingBlocks> in_use_ ISTHMUS_GUARDED_BY(lock_);
  std::size_t block_count_ ISTHMUS_GUARDED_BY(lock_) = 0;
};

}  // namespace isthmus::cuda
