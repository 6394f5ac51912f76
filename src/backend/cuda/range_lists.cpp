// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/range_lists.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/lock_guard.hpp"
#include "core/undo.hpp"

namespace isthmus::cuda {

RangeLists::RangeLists() {
  free_.reserve(k_max_blocks);
  in_use_.reserve(k_max_blocks);
}

// Inspects lists in flight outside the lock, since this queries the driver.
void RangeLists::recycle_completed() {
  std::vector<PendingBlocks> scanned;
  scanned.reserve(k_max_blocks);
  {
    const LockGuard hold{lock_};
    std::move(in_use_.begin(), in_use_.end(), std::back_inserter(scanned));
    in_use_.clear();
  }
  const auto completed =
      std::partition(scanned.begin(), scanned.end(),
                     [](const PendingBlocks& each) { return each.reading->pending(); });
  const LockGuard hold{lock_};
  for (auto each = completed; each != scanned.end(); ++each) {
    free_.insert(free_.end(), each->blocks.begin(), each->blocks.end());
  }
  std::move(scanned.begin(), completed, std::back_inserter(in_use_));
}

bool RangeLists::take_free(std::size_t count, std::vector<Block>& out) {
  const LockGuard hold{lock_};
  const auto first = free_.size() - std::min(count - out.size(), free_.size());
  out.insert(out.end(), free_.begin() + static_cast<std::ptrdiff_t>(first), free_.end());
  free_.resize(first);
  return out.size() == count;
}

// Returns null if the limit is reached or the driver's memory is exhausted.
RangeLists::Block RangeLists::allocate_block(const Api& calls) noexcept {
  {
    const LockGuard hold{lock_};
    if (block_count_ == k_max_blocks) {
      return nullptr;
    }
    ++block_count_;
  }
  void* pointer = nullptr;
  if (calls.allocate_host(&pointer, k_entries_per_block * sizeof(RangeEntry),
                          cu::k_host_portable | cu::k_host_mapped) != cu::k_success) {
    const LockGuard hold{lock_};
    --block_count_;
    return nullptr;
  }
  return static_cast<Block>(pointer);
}

std::vector<RangeLists::Block> RangeLists::acquire(const Api& calls, std::size_t count) {
  std::vector<Block> blocks;
  blocks.reserve(count);
  Undo cleanup{[&] { release(blocks); }};
  if (!take_free(count, blocks)) {
    recycle_completed();
    while (!take_free(count, blocks)) {
      auto* const block = allocate_block(calls);
      if (block == nullptr) {
        return {};
      }
      blocks.push_back(block);
    }
  }
  cleanup.dismiss();
  return blocks;
}

void RangeLists::release(const std::vector<Block>& blocks) noexcept {
  const LockGuard hold{lock_};
  free_.insert(free_.end(), blocks.begin(), blocks.end());
}

void RangeLists::release_after(std::vector<Block> blocks, Ref<Event> reading) noexcept {
  const LockGuard hold{lock_};
  in_use_.push_back({std::move(blocks), std::move(reading)});
}

}  // namespace isthmus::cuda
