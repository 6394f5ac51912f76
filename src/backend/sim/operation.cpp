// SPDX-License-Identifier: Apache-2.0
#include "backend/sim/operation.hpp"

#include <utility>

#include "backend/order_only.hpp"
#include "backend/sim/engine.hpp"

namespace isthmus::sim {

AwaitedEvent AwaitedEvent::of(Event& listed) noexcept {
  const auto* const only = OrderOnlyEvent::waited_by(listed);
  return {dynamic_cast<Operation*>(only != nullptr ? only->get() : &listed), only != nullptr};
}

void perform(const Work& todo) noexcept {
  switch (todo.what) {
    case Action::copy:
      copy_rows({todo.destination.at, todo.destination_pitch, todo.source.at, todo.source_pitch,
                 todo.width, todo.height});
      break;
    case Action::copy_ranges:
      isthmus::copy_ranges({todo.destination.at, todo.source.at, todo.ranges});
      break;
    case Action::fill: fill_bytes(todo.destination.at, todo.pattern, todo.width); break;
    case Action::nothing: break;
  }
}

Result<EventTimes> Operation::times() {
  if (!settled()) {
    return fail(ISTHMUS_PENDING, "the operation has not ended: its times are not known");
  }
  return times_;
}

void Operation::end() noexcept {
  {
    const auto spent = std::exchange(work_, Work{});
    const auto kept = std::exchange(kept_, nullptr);
  }
  complete(failure_);
}

void Operation::refresh() noexcept { engine_->look(*this); }

void Operation::arm() noexcept { engine_->demand(*this); }

// A wait without time is a poll.
void Operation::block(const os::Deadline& until) noexcept {
  if (!until || *until > os::Clock::now()) {
    Event::block(until);
  }
}

}  // namespace isthmus::sim
