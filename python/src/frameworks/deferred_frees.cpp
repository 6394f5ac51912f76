// SPDX-License-Identifier: Apache-2.0
#include "frameworks/deferred_frees.hpp"

#include <cstdio>
#include <deque>
#include <exception>
#include <mutex>

#include "core/gil.hpp"
#include "frameworks/stream_uses.hpp"

namespace isthmus::python {
namespace {

struct WaitingList {
  std::mutex lock;
  std::deque<FreedBlock> all;
};
// Never destroyed.
WaitingList& waiting_list() {
  static auto* const only = new WaitingList;
  return *only;
}

// Returns false if the free has to be retried.
bool try_free(const FreedBlock& block) {
  const auto outcome = StreamUses::record_uses(block.pointer);
  if (outcome == StreamUses::Outcome::recorded) {
    isthmus::detail::check(
        isthmus_resource_deallocate(block.resource, block.pointer, block.nbytes, 0, block.queue));
  }
  return outcome != StreamUses::Outcome::pending;
}

}  // namespace

void DeferredFrees::free(const FreedBlock& block) {
  if (!try_free(block)) {
    auto& list = waiting_list();
    const std::lock_guard hold{list.lock};
    list.all.push_back(block);
    isthmus_resource_retain(block.resource);  // until it is tried again
    count().fetch_add(1, std::memory_order_relaxed);
  }
}

// The free happens outside the lock, since it may call back. Blocks that are deferred again are
// appended to the list.
void DeferredFrees::retry(std::size_t max) noexcept {
  if (is_forked_child()) {  // a thread that the child lacks may hold the lock
    return;
  }
  auto& list = waiting_list();
  for (; max != 0; --max) {
    FreedBlock next{};
    {
      const std::lock_guard hold{list.lock};
      if (list.all.empty()) {
        return;
      }
      next = list.all.front();
      list.all.pop_front();
      count().fetch_sub(1, std::memory_order_relaxed);
    }
    try {
      free(next);
    } catch (const std::exception& problem) {
      std::fprintf(stderr, "isthmus: %zu bytes at %p were not freed: %s\n", next.nbytes,
                   next.pointer, problem.what());
    }
    isthmus_resource_release(next.resource);
  }
}

}  // namespace isthmus::python
