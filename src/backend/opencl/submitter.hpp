// SPDX-License-Identifier: Apache-2.0
#pragma once
// Submits operations, each of one or more commands, to a command queue of the driver. Thread-safe.

#include <optional>
#include <span>
#include <vector>

#include "backend/opencl/device.hpp"
#include "backend/opencl/errors.hpp"
#include "backend/opencl/gate.hpp"
#include "backend/opencl/operation.hpp"
#include "backend/partial_failure.hpp"
#include "core/lock_guard.hpp"
#include "core/mutex.hpp"
#include "core/thread_safety.hpp"

namespace isthmus::opencl {

// The events that a command waits for, and the address at which the driver stores the command's
// event.
struct CommandEvents {
  cl_uint wait_count;
  const cl_event* waits;  // null if there are none
  cl_event* event;        // may be null
};

class Submitter {
 public:
  // The caller owns the queue, which belongs to `device` and `context`, and keeps it alive.
  Submitter(const NativeContext& context, const Device& device, cl_command_queue queue,
            bool out_of_order) noexcept
      : context_{context}, device_{device}, queue_{queue}, out_of_order_{out_of_order} {}

  [[nodiscard]] const NativeContext& context() const noexcept { return context_; }
  [[nodiscard]] const Device& device() const noexcept { return device_; }
  [[nodiscard]] cl_command_queue queue() const noexcept { return queue_; }
  [[nodiscard]] const Api& calls() const noexcept { return context_.driver.calls; }
  // Whether a failed gate terminates the commands of this queue that wait for it.
  [[nodiscard]] bool ends_dependents() const noexcept {
    return device_.traits().ends_dependents && !out_of_order_;
  }
  // Submits `count` consecutive commands to the driver as one operation. command(index, events)
  // submits one command and returns OpenCL's code; `call` is its name in messages. The driver
  // can wait for all of `after` in this context (Queue::can_wait_for).
  template <class Command>
  Result<Ref<Event>> submit(const char* call, std::size_t count, WaitList after, Command&& command);

 private:
  template <class Command>
  cl_int enqueue_in_order(std::size_t count, std::span<const cl_event> waits, bool each_waits,
                          Command& command, OperationEvents& events)
      ISTHMUS_REQUIRES(enqueue_lock_);
  template <class Command>
  cl_int enqueue_between_barriers(std::size_t count, std::span<const cl_event> waits,
                                  std::span<const cl_event> earlier, Command& command,
                                  OperationEvents& events) ISTHMUS_REQUIRES(enqueue_lock_);

  const NativeContext context_;
  const Device& device_;
  const cl_command_queue queue_;
  const bool out_of_order_;
  // Held while the commands of one operation are submitted, so that those of two threads do not
  // interleave. The driver does not wait in these calls, and its callbacks never acquire the lock.
  Mutex enqueue_lock_;
};

// Returns the gates on which an operation that waits for `after` depends. These are as in
// `Submitter::submit`.
[[nodiscard]] GateList gates_before(WaitList after);

// The events that the driver must wait for. They include the gates: for a command that waits only
// for another command, that other command counts as complete even if a failed gate terminated it.
[[nodiscard]] std::vector<cl_event> handles_of(WaitList after, const GateList& gates);

// Adds a closing event to an operation of which some commands are in flight and a later one was
// refused. Returns false if none is in flight. If the driver refuses that event too, waits for the
// commands and returns false.
[[nodiscard]] bool add_closing_event(const Api& calls, cl_command_queue queue,
                                     OperationEvents& events) noexcept;

[[nodiscard]] Error call_failed_without_throwing(const char* call, cl_int outcome) noexcept;

// In an in-order queue only the first command has to wait, unless a failed gate must terminate all
// of them. Only the first and last command need events, for the operation's times and completion.
template <class Command>
cl_int Submitter::enqueue_in_order(std::size_t count, std::span<const cl_event> waits,
                                   bool each_waits, Command& command, OperationEvents& events) {
  for (std::size_t index = 0; index < count; ++index) {
    auto outcome =
        out_of_order_ ? calls().enqueue_barrier(queue_, 0, nullptr, nullptr) : CL_SUCCESS;
    if (outcome == CL_SUCCESS) {
      const bool waiting = !waits.empty() && (index == 0 || each_waits);
      auto* event = index + 1 == count ? &events.last : (index == 0 ? &events.first : nullptr);
      outcome = command(index, CommandEvents{waiting ? static_cast<cl_uint>(waits.size()) : 0,
                                             waiting ? waits.data() : nullptr, event});
    }
    if (outcome != CL_SUCCESS) {
      return outcome;
    }
  }
  return CL_SUCCESS;
}

// Encloses commands that a failed gate may terminate in two barriers. Intel's runtime terminates
// such commands while earlier commands of the queue, or the other events that they wait for
// (`earlier`), are still pending. Without the barriers it would then start the commands after them.
template <class Command>
cl_int Submitter::enqueue_between_barriers(std::size_t count, std::span<const cl_event> waits,
                                           std::span<const cl_event> earlier, Command& command,
                                           OperationEvents& events) {
  cl_event front = nullptr;
  auto outcome = calls().enqueue_barrier(queue_, static_cast<cl_uint>(earlier.size()),
                                         earlier.empty() ? nullptr : earlier.data(), &front);
  if (outcome != CL_SUCCESS) {
    return outcome;
  }
  outcome = enqueue_in_order(count, waits, true, command, events);
  if (outcome == CL_SUCCESS) {
    outcome = calls().enqueue_barrier(queue_, 1, &front, &events.closing);
  }
  calls().release_event(front);
  return outcome;
}

template <class Command>
Result<Ref<Event>> Submitter::submit(const char* call, std::size_t count, WaitList after,
                                     Command&& command) {
  auto gates = gates_before(after);
  const bool may_be_ended = !gates.empty() && ends_dependents();
  if (may_be_ended && gates.size() > 1) {
    // Intel's runtime terminates a command once for each failed user event that it waits for, and
    // crashes the second time. At process exit the runtime fails all user events that were not set.
    auto joint = Gate::join(gates, true);
    if (!joint) {
      return joint.take_error();
    }
    gates = {*std::move(joint)};
  }
  const auto waits = handles_of(after, gates);
  const auto earlier = may_be_ended ? handles_of(after, {}) : std::vector<cl_event>{};
  // Creates the operation first: nothing may fail once the driver has received its commands.
  auto operation = make_ref<Operation>(context_, device_, std::move(gates));
  const bool may_be_partial = count > 1 || may_be_ended;
  auto failure = may_be_partial ? std::optional<PartialFailure>{std::in_place} : std::nullopt;
  OperationEvents events;
  cl_int outcome = CL_SUCCESS;
  bool is_partial = false;  // a later command was refused
  {
    const LockGuard hold{enqueue_lock_};
    outcome = may_be_ended ? enqueue_between_barriers(count, waits, earlier, command, events)
                           : enqueue_in_order(count, waits, false, command, events);
    is_partial = outcome != CL_SUCCESS && add_closing_event(calls(), queue_, events);
  }
  operation->submitted(events);
  if (outcome != CL_SUCCESS && !is_partial) {
    return call_failed(call, outcome);
  }
  calls().flush(queue_);  // otherwise a thread that waits without flushing could wait indefinitely
  return is_partial ? failure->after(*operation, call_failed_without_throwing(call, outcome))
                    : Ref<Event>{operation};
}

}  // namespace isthmus::opencl
