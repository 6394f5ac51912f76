#pragma once
// How operations are put to the driver: the body of queue's templates, for queue.cpp and copy.cpp.

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "backend/opencl/errors.hpp"
#include "backend/opencl/gate.hpp"
#include "backend/opencl/queue.hpp"

namespace isthmus::opencl {

// The gates behind which an operation after `after` stands; `handles` gets what it has to wait for.
// The gates are among that, since a command that a failed one ended counts as done for whatever
// waits for that command alone. Pre: all are events of this driver: the seam asked `knows`.
inline gate_list gates_before(wait_list after, std::vector<event_handle>& handles) {
  gate_list gates;
  const auto keep_one_of_each = [](auto& all) {
    const auto less = [](const auto& one, const auto& other) {
      return std::less{}(std::to_address(one), std::to_address(other));
    };
    const auto same = [](const auto& one, const auto& other) {
      return std::to_address(one) == std::to_address(other);
    };
    std::sort(all.begin(), all.end(), less);
    all.erase(std::unique(all.begin(), all.end(), same), all.end());
  };
  for (const auto& before : after) {
    auto& known = static_cast<driver_event&>(*before);
    handles.push_back(known.handle());
    known.add_gates(gates);
  }
  keep_one_of_each(gates);
  for (const auto& before : gates) {
    handles.push_back(before->handle());
  }
  keep_one_of_each(handles);
  return gates;
}

// In an in-order queue only the first command has to wait, unless a failed gate is to end all of
// them, and only the first and last need events: from them the operation's times and end are known.
template <class Command>
code queue::put_in_order(std::size_t count, std::span<const event_handle> waits, bool each_waits,
                         Command& command, operation_events& made) {
  for (std::size_t index = 0; index < count; ++index) {
    auto outcome =
        out_of_order_ ? calls().enqueue_barrier(handle_, 0, nullptr, nullptr) : cl::k_success;
    if (outcome == cl::k_success) {
      const bool waiting = !waits.empty() && (index == 0 || each_waits);
      auto* told = index + 1 == count ? &made.last : (index == 0 ? &made.first : nullptr);
      outcome = command(index, command_events{waiting ? static_cast<number>(waits.size()) : 0,
                                              waiting ? waits.data() : nullptr, told});
    }
    if (outcome != cl::k_success) {
      return outcome;
    }
  }
  return cl::k_success;
}

// Commands that a failed gate may end stand between two barriers: Intel's runtime ends them while
// what is in front of them still runs, and would let what is behind them begin.
template <class Command>
code queue::put_between_barriers(std::size_t count, std::span<const event_handle> waits,
                                 Command& command, operation_events& made) {
  event_handle front = nullptr;
  auto outcome = calls().enqueue_barrier(handle_, 0, nullptr, &front);
  if (outcome != cl::k_success) {
    return outcome;
  }
  outcome = put_in_order(count, waits, true, command, made);
  if (outcome == cl::k_success) {
    outcome = calls().enqueue_barrier(handle_, 1, &front, &made.closing);
  }
  calls().release_event(front);
  return outcome;
}

template <class Command>
result<ref<event>> queue::submit(const char* call, std::size_t count, wait_list after,
                                 Command&& command) {
  std::vector<event_handle> waits;
  auto gates = gates_before(after, waits);
  const bool may_be_ended = !gates.empty() && ends_dependents();
  // Made first: once the driver has the operation nothing may fail.
  auto made = make_ref<operation>(context_.driver(), context_.handle(), std::move(gates));
  operation_events events;
  code outcome = cl::k_success;
  {
    const std::lock_guard hold{submitting_};
    outcome = may_be_ended ? put_between_barriers(count, waits, command, events)
                           : put_in_order(count, waits, false, command, events);
  }
  made->submitted(events);
  if (outcome != cl::k_success) {
    if (events.first != nullptr || events.last != nullptr) {
      calls().finish(handle_);  // a later part was refused: leave nothing of it in flight
    }
    return call_failed(call, outcome);
  }
  calls().flush(handle_);  // so that whoever waits, in whatever way, does not wait for ever
  return ref<event>{made};
}

}  // namespace isthmus::opencl
