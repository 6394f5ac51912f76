#pragma once
// How operations are put to the driver: the body of queue's templates, for queue.cpp and copy.cpp.

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "backend/opencl/errors.hpp"
#include "backend/opencl/gate.hpp"
#include "backend/opencl/queue.hpp"
#include "backend/part_failure.hpp"

namespace isthmus::opencl {

// One of each.
template <class T>
void drop_duplicates(std::vector<T>& all) {
  const auto less = [](const auto& one, const auto& other) {
    return std::less{}(std::to_address(one), std::to_address(other));
  };
  const auto same = [](const auto& one, const auto& other) {
    return std::to_address(one) == std::to_address(other);
  };
  std::sort(all.begin(), all.end(), less);
  all.erase(std::unique(all.begin(), all.end(), same), all.end());
}

// The gates behind which an operation after `after` stands. Pre: all are events of this driver: the
// seam asked `knows`.
inline gate_list gates_before(wait_list after) {
  gate_list gates;
  for (const auto& before : after) {
    static_cast<driver_event&>(*before).add_gates(gates);
  }
  drop_duplicates(gates);
  return gates;
}

// What the driver has to wait for. The gates are among that, since a command that a failed one
// ended counts as done for whatever waits for that command alone.
inline std::vector<event_handle> handles_of(wait_list after, const gate_list& gates) {
  std::vector<event_handle> handles;
  for (const auto& before : after) {
    if (dynamic_cast<const gate*>(std::to_address(before)) == nullptr) {
      handles.push_back(static_cast<driver_event&>(*before).handle());
    }
  }
  for (const auto& before : gates) {
    handles.push_back(before->handle());
  }
  drop_duplicates(handles);
  return handles;
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

// An event for the end of an operation of which a part is in flight and a later one was refused.
// False if none is in flight: where the driver has no event either, once that part has ended.
inline bool give_end(const api& calls, queue_handle of, operation_events& made) noexcept {
  if (made.first == nullptr && made.last == nullptr) {
    return false;
  }
  if (calls.enqueue_barrier(of, 0, nullptr, &made.closing) == cl::k_success) {
    return true;
  }
  calls.finish(of);
  return false;
}

inline error call_failed_without_throwing(const char* call, code outcome) noexcept try {
  return call_failed(call, outcome);
} catch (const std::bad_alloc&) {
  return error::no_memory();
}

// Commands that a failed gate may end stand between two barriers: Intel's runtime ends them while
// what is in front of them, or else what they wait for (`earlier`), still runs, and would go on to
// what comes after them.
template <class Command>
code queue::put_between_barriers(std::size_t count, std::span<const event_handle> waits,
                                 std::span<const event_handle> earlier, Command& command,
                                 operation_events& made) {
  event_handle front = nullptr;
  auto outcome = calls().enqueue_barrier(handle_, static_cast<number>(earlier.size()),
                                         earlier.empty() ? nullptr : earlier.data(), &front);
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
  auto gates = gates_before(after);
  const bool may_be_ended = !gates.empty() && ends_dependents();
  if (may_be_ended && gates.size() > 1) {
    // Intel's runtime ends a command once for each user event before it that fails, and crashes the
    // second time. At the process's end it fails all that have not been set.
    auto joint = gate::join(gates, true);
    if (!joint) {
      return joint.take_error();
    }
    gates = {*std::move(joint)};
  }
  const auto waits = handles_of(after, gates);
  const auto earlier = may_be_ended ? handles_of(after, {}) : std::vector<event_handle>{};
  // Made first: once the driver has the operation nothing may fail.
  auto made = make_ref<operation>(context_.driver(), context_.handle(), where(), std::move(gates));
  const bool has_parts = count > 1 || may_be_ended;
  auto failure = has_parts ? std::optional<part_failure>{std::in_place} : std::nullopt;
  operation_events events;
  code outcome = cl::k_success;
  bool is_in_part = false;  // a later part was refused
  {
    const std::lock_guard hold{submitting_};
    outcome = may_be_ended ? put_between_barriers(count, waits, earlier, command, events)
                           : put_in_order(count, waits, false, command, events);
    is_in_part = outcome != cl::k_success && give_end(calls(), handle_, events);
  }
  made->submitted(events);
  if (outcome != cl::k_success && !is_in_part) {
    return call_failed(call, outcome);
  }
  calls().flush(handle_);  // so that whoever waits, in whatever way, does not wait for ever
  return is_in_part ? failure->after(*made, call_failed_without_throwing(call, outcome))
                    : ref<event>{made};
}

}  // namespace isthmus::opencl
