// SPDX-License-Identifier: Apache-2.0
#include "backend/sim/operation.hpp"

#include <utility>

#include "backend/order_only.hpp"
#include "backend/sim/engine.hpp"

namespace isthmus::sim {

awaited_event awaited_event::of(event& listed) noexcept {
  const auto* const only = order_only_event::waited_by(listed);
  return {dynamic_cast<operation*>(only != nullptr ? only->get() : &listed), only != nullptr};
}

void perform(const work& todo) noexcept {
  switch (todo.what) {
    case action::copy:
      copy_rows({todo.destination.at, todo.destination_pitch, todo.source.at, todo.source_pitch,
                 todo.width, todo.height});
      break;
    case action::copy_ranges:
      isthmus::copy_ranges({todo.destination.at, todo.source.at, todo.ranges});
      break;
    case action::fill: fill_bytes(todo.destination.at, todo.pattern, todo.width); break;
    case action::nothing: break;
  }
}

result<event_times> operation::times() {
  if (!settled()) {
    return fail(ISTHMUS_PENDING, "the operation has not ended: its times are not known");
  }
  return times_;
}

void operation::end() noexcept {
  {
    const auto spent = std::exchange(work_, work{});
    const auto kept = std::exchange(kept_, nullptr);
  }
  complete(failure_);
}

void operation::refresh() noexcept { home_->look(*this); }

void operation::arm() noexcept { home_->demand(*this); }

// A wait without time is a poll.
void operation::block(const os::deadline& until) noexcept {
  if (!until || *until > os::clock::now()) {
    event::block(until);
  }
}

}  // namespace isthmus::sim
