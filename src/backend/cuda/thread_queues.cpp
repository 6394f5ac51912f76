// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/thread_queues.hpp"

#include <algorithm>
#include <atomic>
#include <vector>

#include "backend/cuda/queue.hpp"
#include "core/owned_by_thread.hpp"

namespace isthmus::cuda {
namespace {

std::uint64_t next_thread_id() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

struct ThreadQueues {
  const std::uint64_t thread = next_thread_id();
  std::vector<Ref<isthmus::Queue>> queues;
};
thread_local constinit OwnedByThread<ThreadQueues> thread_queues;

}  // namespace

std::uint64_t current_thread_id() noexcept {
  const auto* const own_queues = thread_queues.find();
  return own_queues != nullptr ? own_queues->thread : 0;
}

Result<Ref<isthmus::Queue>> current_thread_queue(Context& context, Device& device) {
  auto* const own_queues = thread_queues.get();
  if (own_queues == nullptr) {
    return thread_queues.is_destroyed()
               ? fail(ISTHMUS_ERROR_CLOSED,
                      "this thread is ending: its per-thread default stream of {} cannot "
                      "be adopted any more",
                      device.properties().filter)
               : Error::no_memory();
  }
  const auto found = std::find_if(own_queues->queues.begin(), own_queues->queues.end(),
                                  [&](const auto& each) { return &each->device() == &device; });
  if (found != own_queues->queues.end()) {
    if ((*found)->closed()) {  // replaced by a new queue
      *found = make_ref<Queue>(context, device, OwnerThread{own_queues->thread});
    }
    return *found;
  }
  return own_queues->queues.emplace_back(
      make_ref<Queue>(context, device, OwnerThread{own_queues->thread}));
}

}  // namespace isthmus::cuda
