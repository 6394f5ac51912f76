// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/thread_queues.hpp"

#include <algorithm>
#include <atomic>
#include <vector>

#include "backend/cuda/queue.hpp"
#include "core/owned_by_thread.hpp"

namespace isthmus::cuda {
namespace {

std::uint64_t next_thread() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

struct OwnQueues {
  const std::uint64_t thread = next_thread();
  std::vector<Ref<isthmus::Queue>> all;
};
thread_local constinit OwnedByThread<OwnQueues> own;

}  // namespace

std::uint64_t own_thread() noexcept {
  const auto* const mine = own.find();
  return mine != nullptr ? mine->thread : 0;
}

Result<Ref<isthmus::Queue>> own_thread_queue(Context& context, Device& device) {
  auto* const mine = own.get();
  if (mine == nullptr) {
    return own.is_gone() ? fail(ISTHMUS_ERROR_CLOSED,
                                "this thread is ending: its per-thread default stream of {} cannot "
                                "be adopted any more",
                                device.properties().filter)
                         : Error::no_memory();
  }
  const auto found = std::find_if(mine->all.begin(), mine->all.end(),
                                  [&](const auto& each) { return &each->device() == &device; });
  if (found != mine->all.end()) {
    if ((*found)->closed()) {  // by one of its users: continue with a new queue
      *found = make_ref<Queue>(context, device, OfOneThread{mine->thread});
    }
    return *found;
  }
  return mine->all.emplace_back(make_ref<Queue>(context, device, OfOneThread{mine->thread}));
}

}  // namespace isthmus::cuda
