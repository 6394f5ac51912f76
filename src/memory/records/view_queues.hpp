// SPDX-License-Identifier: Apache-2.0
#pragma once
// The queues on which views of one allocation submit operations, besides the allocation's own. If
// the handle of such a queue was exported, work that the library does not know may use the memory
// there.

#include <atomic>
#include <vector>

#include "backend/queue.hpp"
#include "core/spin_lock.hpp"
#include "core/thread_safety.hpp"

namespace isthmus {

// Thread-safe. Queries are a plain load while there are none.
class ViewQueues {
 public:
  // Counts one more view on that queue. Throws std::bad_alloc, without effect.
  void begin(Queue& queue);
  // Counts one view less on that queue.
  void end(Queue& queue) noexcept;
  [[nodiscard]] bool any() const noexcept { return any_.load(std::memory_order_acquire); }
  [[nodiscard]] const std::atomic<bool>& any_flag() const noexcept { return any_; }
  [[nodiscard]] bool any_exported() noexcept { return any() && find_exported(); }
  void collect_exported(std::vector<Ref<Queue>>& out);
  [[nodiscard]] bool any_queried_on_demand() noexcept { return any() && find_queried_on_demand(); }

 private:
  struct Entry {
    Ref<Queue> queue;
    std::size_t views;
  };
  [[nodiscard]] bool find_exported() noexcept;
  [[nodiscard]] bool find_queried_on_demand() noexcept;
  [[nodiscard]] std::vector<Entry>::iterator find(const Queue& queue) noexcept
      ISTHMUS_REQUIRES(lock_);

  std::atomic<bool> any_{false};
  SpinLock lock_;
  std::vector<Entry> entries_ ISTHMUS_GUARDED_BY(lock_);
};

}  // namespace isthmus
