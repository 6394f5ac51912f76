// SPDX-License-Identifier: Apache-2.0
#include "stream_notes.hpp"

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

using Notes = std::unordered_map<void*, std::vector<isthmus_queue_t*>>;

struct Shard {
  std::mutex lock;
  Notes blocks;
};
constexpr std::size_t k_shards = 16;
// Number of noted blocks. Most programs note none, and a free then checks nothing else. Relaxed
// order suffices: the thread that frees a block is synchronized with those that noted it.
std::atomic<std::size_t> noted{0};

// Never destroyed.
Shard& shard_of(void* block) {
  static auto* const all = new Shard[k_shards];
  const auto bits = reinterpret_cast<std::uintptr_t>(block);
  return all[(bits >> 8 ^ bits >> 16 ^ bits >> 21) % k_shards];
}

Notes::node_type take(void* block) noexcept {
  auto& in = shard_of(block);
  const std::lock_guard hold{in.lock};
  auto taken = in.blocks.extract(block);
  noted.fetch_sub(taken.empty() ? 0 : 1, std::memory_order_relaxed);
  return taken;
}

void put_back(Notes::node_type taken) {
  auto& in = shard_of(taken.key());
  const std::lock_guard hold{in.lock};
  in.blocks.insert(std::move(taken));
  noted.fetch_add(1, std::memory_order_relaxed);
}

StreamNotes::Outcome tell_of_loss(const void* block) noexcept {
  std::fprintf(stderr,
               "isthmus: the memory at %p is leaked, because its release cannot be ordered after "
               "its uses: %s\n",
               block, isthmus_error_message());
  return StreamNotes::Outcome::lost;
}

}  // namespace

void StreamNotes::add(void* block, isthmus_queue_t* queue) {
  auto& in = shard_of(block);
  const std::lock_guard hold{in.lock};
  auto& queues = in.blocks[block];
  if (std::find(queues.begin(), queues.end(), queue) == queues.end()) {
    queues.push_back(queue);
    noted.fetch_add(queues.size() == 1 ? 1 : 0, std::memory_order_relaxed);
  }
}

StreamNotes::Outcome StreamNotes::settle(void* block) noexcept {
  if (noted.load(std::memory_order_relaxed) == 0) [[likely]] {
    return Outcome::settled;
  }
  auto taken = take(block);
  while (!taken.empty() && !taken.mapped().empty()) {
    const auto status = isthmus_record_queue(block, taken.mapped().back());
    if (status == ISTHMUS_OK) {
      taken.mapped().pop_back();
    } else if (status != ISTHMUS_ERROR_UNSUPPORTED) {
      return tell_of_loss(block);
    } else {
      try {
        put_back(std::move(taken));
        return Outcome::not_yet;
      } catch (const std::bad_alloc&) {
        return tell_of_loss(block);
      }
    }
  }
  return Outcome::settled;
}

}  // namespace isthmus::python
