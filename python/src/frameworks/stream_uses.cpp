// SPDX-License-Identifier: Apache-2.0
#include "frameworks/stream_uses.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

namespace isthmus::python {
namespace {

using UsesByStream = std::unordered_map<void*, std::vector<isthmus_queue_t*>>;

struct Shard {
  std::mutex lock;
  UsesByStream blocks;
};
constexpr std::size_t k_shards = 16;
// Number of blocks with recorded streams. Most programs record none, and a free then checks nothing
// else. Relaxed order suffices: the thread that frees a block is synchronized with those that
// recorded its streams.
std::atomic<std::size_t> block_count{0};

// Never destroyed.
Shard& shard_of(void* block) {
  static auto* const all = new Shard[k_shards];
  const auto bits = reinterpret_cast<std::uintptr_t>(block);
  return all[(bits >> 8 ^ bits >> 16 ^ bits >> 21) % k_shards];
}

UsesByStream::node_type extract(void* block) noexcept {
  auto& shard = shard_of(block);
  const std::lock_guard hold{shard.lock};
  auto node = shard.blocks.extract(block);
  block_count.fetch_sub(node.empty() ? 0 : 1, std::memory_order_relaxed);
  return node;
}

void reinsert(UsesByStream::node_type node) {
  auto& shard = shard_of(node.key());
  const std::lock_guard hold{shard.lock};
  shard.blocks.insert(std::move(node));
  block_count.fetch_add(1, std::memory_order_relaxed);
}

StreamUses::Outcome report_leak(const void* block) noexcept {
  std::fprintf(stderr,
               "isthmus: the memory at %p is leaked, because its release cannot be ordered after "
               "its uses: %s\n",
               block, isthmus_error_message());
  return StreamUses::Outcome::leaked;
}

}  // namespace

void StreamUses::add(void* block, isthmus_queue_t* queue) {
  auto& shard = shard_of(block);
  const std::lock_guard hold{shard.lock};
  auto& queues = shard.blocks[block];
  if (std::find(queues.begin(), queues.end(), queue) == queues.end()) {
    queues.push_back(queue);
    block_count.fetch_add(queues.size() == 1 ? 1 : 0, std::memory_order_relaxed);
  }
}

StreamUses::Outcome StreamUses::record_uses(void* block) noexcept {
  if (block_count.load(std::memory_order_relaxed) == 0) [[likely]] {
    return Outcome::recorded;
  }
  auto node = extract(block);
  while (!node.empty() && !node.mapped().empty()) {
    const auto status = isthmus_record_queue(block, node.mapped().back());
    if (status == ISTHMUS_OK) {
      node.mapped().pop_back();
    } else if (status != ISTHMUS_ERROR_UNSUPPORTED) {
      return report_leak(block);
    } else {
      try {
        reinsert(std::move(node));
        return Outcome::pending;
      } catch (const std::bad_alloc&) {
        return report_leak(block);
      }
    }
  }
  return Outcome::recorded;
}

}  // namespace isthmus::python
