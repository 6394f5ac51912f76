#pragma once
// The two kinds of dependency: an event in a wait list propagates its failure (the caller's
// `after`), unless it stands there as `order_only` (a conflict on the same bytes): then what waits
// for it runs once it has ended, whatever its outcome.

#include <vector>

#include "backend/event.hpp"

namespace isthmus {

// Ends, with success, when another event has ended. Queues look through it: a driver that knows the
// other event waits for that one (queue::translate). Costs one allocation of some 100 bytes.
class order_only_event final : public event, private continuation {
 public:
  explicit order_only_event(ref<event> waited) noexcept : waited_{std::move(waited)} {}

  [[nodiscard]] const ref<event>& waited() const noexcept { return waited_; }
  // The event that `candidate` stands for where it is one of these, else null.
  [[nodiscard]] static const ref<event>* waited_by(event& candidate) noexcept;

 protected:
  void refresh() noexcept override;
  void arm() noexcept override;
  void block(const os::deadline& until) noexcept override;

 private:
  void run(event& ended) noexcept override;

  const ref<event> waited_;
  std::atomic<bool> armed_{false};  // then `waited_` holds a reference to this until it ends
};

// Throws std::bad_alloc. One that orders only already is returned as it is.
[[nodiscard]] ref<event> order_only(const ref<event>& before);
[[nodiscard]] std::vector<ref<event>> order_only(wait_list before);

}  // namespace isthmus
