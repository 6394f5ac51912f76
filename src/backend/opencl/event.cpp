// SPDX-License-Identifier: Apache-2.0
#include "backend/opencl/event.hpp"

#include <algorithm>
#include <iterator>
#include <thread>

#include "backend/call_of_any_thread.hpp"
#include "backend/opencl/errors.hpp"
#include "backend/opencl/gate.hpp"
#include "backend/opencl/platform.hpp"
#include "core/threads.hpp"
#include "os/process.hpp"

namespace isthmus::opencl {
namespace {

// A wait with a deadline polls for this long before it sleeps: a callback and a sleep cost 15 us on
// Intel's CPU runtime, where a 4 KiB copy takes 9.
constexpr std::chrono::microseconds k_ask_before_sleeping{20};

}  // namespace

DriverEvent::~DriverEvent() {
  if (handle_ != nullptr && !os::drivers_are_gone()) {
    driver_.calls().release_event(handle_);
  }
}

bool DriverEvent::may_be_ended() {
  GateList gates;
  add_gates(gates);
  return std::any_of(gates.begin(), gates.end(),
                     [](const auto& before) { return before->ends_dependents(); });
}

Operation::Operation(const Platform& driver, ContextHandle context, const isthmus::Device& device,
                     GateList gates) noexcept
    : DriverEvent{driver, context, nullptr}, device_{device}, gates_{std::move(gates)} {}

Operation::~Operation() {
  for (auto* part : {first_, inner_}) {
    if (part != nullptr && !os::drivers_are_gone()) {
      driver().calls().release_event(part);
    }
  }
}

// Gates that have opened are omitted; otherwise a chain of operations would accumulate them.
void Operation::add_gates(GateList& all) {
  std::copy_if(gates_.begin(), gates_.end(), std::back_inserter(all),
               [](const Ref<Gate>& each) { return !each->succeeded(); });
}

Error Operation::failure_of_gates() const {
  for (const auto& before : gates_) {
    if (before->poll() < ISTHMUS_OK) {
      return before->failure_of_dependents();
    }
  }
  return {};
}

Error Operation::failure(Code outcome) const {
  return fail(outcome == cl::k_failed_dependency ? ISTHMUS_ERROR_DEPENDENCY : ISTHMUS_ERROR_DRIVER,
              "the driver ended the operation with {} ({})", code_name(outcome), outcome);
}

// The first error of the first and the inner event, or success. Pre: both have ended.
Code Operation::outcome_of_parts() const noexcept {
  for (auto* part : {first_, inner_}) {
    Code reached = cl::k_complete;
    if (part != nullptr) {
      driver().calls().get_event_info(part, cl::k_event_status, sizeof reached, &reached, nullptr);
    }
    if (reached < cl::k_complete) {
      return reached;
    }
  }
  return cl::k_complete;
}

void Operation::settle(Code outcome) noexcept {
  if (auto failed = failure_of_gates()) {
    complete(std::move(failed));
    return;
  }
  const auto ended = outcome == cl::k_complete ? outcome_of_parts() : outcome;
  complete(ended == cl::k_complete ? Error{} : failure(ended));
}

void Operation::refresh() noexcept {
  const CallOfAnyThread counted;
  if (!counted) {
    complete(process_is_ending());
    return;
  }
  const auto& calls = driver().calls();
  Code reached = cl::k_complete;
  const auto asked =
      calls.get_event_info(handle(), cl::k_event_status, sizeof reached, &reached, nullptr);
  if (asked != cl::k_success) {
    complete(failure(asked));  // it may still be running
  } else if (reached <= cl::k_complete) {
    // Intel's runtime reports success for commands that it ended because of a failed dependency. A
    // wait returns the true outcome. It costs 0.15 us here, since the event has completed.
    const EventHandle own = handle();
    settle(reached < cl::k_complete ? reached : calls.wait_for_events(1, &own));
  }
}

void Operation::on_driver_event(EventHandle, Code outcome, void* self) noexcept {
  // Adopts the reference that `arm` retained.
  const auto armed = Ref<Operation>::adopt(static_cast<Operation*>(self));
  armed->settle(outcome);
}

void Operation::arm() noexcept {
  const CallOfAnyThread counted;
  if (armed_.exchange(true, std::memory_order_acq_rel) || !counted) {
    return;
  }
  retain();
  const auto outcome =
      driver().calls().set_callback(handle(), cl::k_complete, on_driver_event, this);
  if (outcome != cl::k_success) {
    complete(call_failed("clSetEventCallback", outcome));
    release();
  }
}

bool Operation::spin() noexcept {
  const auto end = os::Clock::now() + k_ask_before_sleeping;
  do {
    refresh();
    if (settled()) {
      return true;
    }
    std::this_thread::yield();
  } while (os::Clock::now() < end);
  return false;
}

void Operation::block(const os::Deadline& until) noexcept {
  if (on_library_thread()) {
    Event::block(until);
    return;
  }
  if (until) {
    if (*until > os::Clock::now() && !spin()) {
      Event::block(until);
    }
    return;
  }
  const EventHandle own = handle();
  if (!os::drivers_are_gone()) {
    driver().calls().wait_for_events(1, &own);
  }
  refresh();
  if (!settled()) {
    Event::block(until);  // another thread is about to complete it
  }
}

Result<EventTimes> Operation::times() {
  if (pending()) {
    return fail(ISTHMUS_PENDING,
                "the operation has not completed: its times are available afterwards");
  }
  if (os::drivers_are_gone()) {
    return process_is_ending();
  }
  const auto& calls = driver().calls();
  EventTimes told;
  const auto ask = [&](EventHandle event, Number number, std::uint64_t& time) {
    return calls.get_profile(event, number, sizeof time, &time, nullptr);
  };
  auto* only = inner_ != nullptr ? inner_ : handle();
  auto* begin = first_ != nullptr ? first_ : only;
  for (const auto outcome : {ask(begin, cl::k_profile_queued, told.submitted_ns),
                             ask(begin, cl::k_profile_started, told.started_ns),
                             ask(handle(), cl::k_profile_ended, told.ended_ns)}) {
    if (outcome != cl::k_success) {
      return fail(ISTHMUS_ERROR_UNSUPPORTED,
                  "the times of this operation are not available: {} ({})", code_name(outcome),
                  outcome);
    }
  }
  return told;
}

}  // namespace isthmus::opencl
