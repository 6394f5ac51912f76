// SPDX-License-Identifier: Apache-2.0
#include "backend/sim/operation.hpp"

#include <utility>

#include "backend/order_only.hpp"

namespace isthmus::sim {

AwaitedEvent AwaitedEvent::of(Event& listed) noexcept {
  const auto* const wrapped = OrderOnlyEvent::wrapped_by(listed);
  return {dynamic_cast<Operation*>(wrapped != nullptr ? wrapped->get() : &listed),
          wrapped != nullptr};
}

void perform(const Work& work) noexcept {
  switch (work.action) {
    case Action::copy:
      copy_rows({work.destination.address, work.destination_pitch, work.source.address,
                 work.source_pitch, work.width, work.height});
      break;
    case Action::copy_ranges:
      isthmus::copy_ranges({work.destination.address, work.source.address, work.ranges});
      break;
    case Action::fill: fill_bytes(work.destination.address, work.pattern, work.width); break;
    case Action::none: break;
  }
}

void Operation::end() noexcept {
  {
    const auto finished_work = std::exchange(work_, Work{});
    const auto released_queue = std::exchange(released_queue_, nullptr);
  }
  complete_with_outcome();
}

// A wait whose deadline has passed only polls.
void Operation::block(const os::Deadline& until) noexcept {
  if (!until || *until > os::Clock::now()) {
    Event::block(until);
  }
}

}  // namespace isthmus::sim
