// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/thread_queues.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "core/owned_by_thread.hpp"

namespace isthmus::cuda {
namespace {

std::uint64_t next_thread_id() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

thread_local constinit OwnedByThread<ThreadQueues> thread_queues;

}  // namespace

ThreadQueues::ThreadQueues() noexcept : thread_{next_thread_id()} {}

Result<ThreadQueues*> ThreadQueues::current(const isthmus::Device& device) {
  if (auto* const own_queues = thread_queues.get()) {
    return own_queues;
  }
  return thread_queues.is_destroyed()
             ? fail(ISTHMUS_ERROR_CLOSED,
                    "this thread is ending: its per-thread default stream of {} cannot "
                    "be adopted any more",
                    device.properties().filter)
             : Error::no_memory();
}

Ref<isthmus::Queue> ThreadQueues::find_open(const isthmus::Device& device) const noexcept {
  const auto found =
      std::ranges::find_if(queues_, [&](const auto& each) { return &each->device() == &device; });
  return found != queues_.end() && !(*found)->closed() ? *found : Ref<isthmus::Queue>{};
}

void ThreadQueues::put(Ref<isthmus::Queue> queue) {
  std::erase_if(queues_, [&](const auto& each) { return &each->device() == &queue->device(); });
  queues_.push_back(std::move(queue));
}

std::uint64_t current_thread_id() noexcept {
  const auto* const own_queues = thread_queues.find();
  return own_queues != nullptr ? own_queues->thread() : 0;
}

}  // namespace isthmus::cuda
