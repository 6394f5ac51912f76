#include "stream_notes.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace isthmus::python {
namespace {

struct shard {
  std::mutex lock;
  std::unordered_map<void*, std::vector<isthmus_queue_t*>> blocks;
};
constexpr std::size_t k_shards = 16;
// Blocks that are noted: most programs note none, and then a free looks no further.
std::atomic<std::size_t> noted{0};

// As long as the process.
shard& shard_of(void* block) {
  static auto* const all = new shard[k_shards];
  const auto bits = reinterpret_cast<std::uintptr_t>(block);
  return all[(bits >> 8 ^ bits >> 16 ^ bits >> 21) % k_shards];
}

std::vector<isthmus_queue_t*> take(void* block) {
  auto& in = shard_of(block);
  const std::lock_guard hold{in.lock};
  const auto found = in.blocks.find(block);
  if (found == in.blocks.end()) {
    return {};
  }
  auto queues = std::move(found->second);
  in.blocks.erase(found);
  noted.fetch_sub(queues.empty() ? 0 : 1, std::memory_order_relaxed);
  return queues;
}

}  // namespace

void stream_notes::add(void* block, isthmus_queue_t* queue) {
  auto& in = shard_of(block);
  const std::lock_guard hold{in.lock};
  auto& queues = in.blocks[block];
  if (std::find(queues.begin(), queues.end(), queue) == queues.end()) {
    queues.push_back(queue);
    noted.fetch_add(queues.size() == 1 ? 1 : 0, std::memory_order_relaxed);
  }
}

bool stream_notes::settle(void* block) noexcept {
  if (noted.load(std::memory_order_relaxed) == 0) [[likely]] {
    return true;
  }
  for (auto* const queue : take(block)) {
    if (isthmus_record_queue(block, queue) != ISTHMUS_OK) {
      std::fprintf(stderr, "isthmus: the memory at %p is lost, as its end cannot be ordered: %s\n",
                   block, isthmus_error_message());
      return false;
    }
  }
  return true;
}

}  // namespace isthmus::python
