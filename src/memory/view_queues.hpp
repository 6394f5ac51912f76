#pragma once
// The queues that views of one allocation put operations on, beside its own. Where the handle of
// one was lent, work that we do not know may use the memory there.

#include <atomic>
#include <vector>

#include "backend/queue.hpp"
#include "core/spin_lock.hpp"

namespace isthmus {

// Safe for threads; a plain load while there are none.
class view_queues {
 public:
  // A view more on that queue; throws std::bad_alloc, and then nothing is done.
  void begin(queue& on);
  // One less. Pre: it began.
  void end(queue& on) noexcept;
  [[nodiscard]] bool any() const noexcept { return some_.load(std::memory_order_acquire); }
  [[nodiscard]] const std::atomic<bool>& some() const noexcept { return some_; }
  [[nodiscard]] bool any_lent() noexcept { return any() && find_lent(); }
  void collect_lent(std::vector<ref<queue>>& out);
  [[nodiscard]] bool any_asked_on_demand() noexcept { return any() && find_asked_on_demand(); }

 private:
  struct entry {
    ref<queue> on;
    std::size_t views;
  };
  [[nodiscard]] bool find_lent() noexcept;
  [[nodiscard]] bool find_asked_on_demand() noexcept;
  [[nodiscard]] std::vector<entry>::iterator find(const queue& on) noexcept;

  std::atomic<bool> some_{false};
  spin_lock lock_;
  std::vector<entry> entries_;
};

}  // namespace isthmus
