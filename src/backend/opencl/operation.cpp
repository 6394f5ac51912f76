// SPDX-License-Identifier: Apache-2.0
#include "backend/opencl/operation.hpp"

#include <algorithm>
#include <iterator>
#include <thread>

#include "backend/call_of_any_thread.hpp"
#include "backend/opencl/errors.hpp"
#include "core/threads.hpp"
#include "os/process.hpp"

namespace isthmus::opencl {
namespace {

// A wait with a deadline polls for this long before it sleeps: a callback and a sleep cost 15 us on
// Intel's CPU runtime, where a 4 KiB copy takes 9 us.
constexpr std::chrono::microseconds k_spin_before_sleep{20};

}  // namespace

Operation::Operation(const NativeContext& context, const isthmus::Device& device,
                     GateList gates) noexcept
    : DriverEvent{context, nullptr}, device_{device}, gates_{std::move(gates)} {}

Operation::~Operation() {
  for (auto* event : {first_, inner_}) {
    if (event != nullptr && !os::drivers_unavailable()) {
      calls().release_event(event);
    }
  }
}

// Omits gates that have succeeded; otherwise a chain of operations would accumulate them.
void Operation::add_gates(GateList& all) {
  std::copy_if(gates_.begin(), gates_.end(), std::back_inserter(all),
               [](const Ref<Gate>& gate) { return !gate->succeeded(); });
}

Error Operation::failure_of_gates() const {
  for (const auto& gate : gates_) {
    if (gate->poll() < ISTHMUS_OK) {
      return gate->failure_of_dependents();
    }
  }
  return {};
}

Error Operation::failure(Code outcome) const {
  return fail(outcome == cl::k_failed_dependency ? ISTHMUS_ERROR_DEPENDENCY : ISTHMUS_ERROR_DRIVER,
              "the driver ended the operation with {} ({})", code_name(outcome), outcome);
}

// Returns the first error of the first and the inner event, or success. Pre: both have completed.
Code Operation::outcome_of_commands() const noexcept {
  for (auto* event : {first_, inner_}) {
    Code status = cl::k_complete;
    if (event != nullptr) {
      calls().get_event_info(event, cl::k_event_status, sizeof status, &status, nullptr);
    }
    if (status < cl::k_complete) {
      return status;
    }
  }
  return cl::k_complete;
}

void Operation::complete_with(Code outcome) noexcept {
  if (auto failed = failure_of_gates()) {
    complete(std::move(failed));
    return;
  }
  const auto code = outcome == cl::k_complete ? outcome_of_commands() : outcome;
  complete(code == cl::k_complete ? Error{} : failure(code));
}

void Operation::refresh() noexcept {
  const CallOfAnyThread counted;
  if (!counted) {
    complete(driver_unavailable_error());
    return;
  }
  Code status = cl::k_complete;
  const auto outcome =
      calls().get_event_info(handle(), cl::k_event_status, sizeof status, &status, nullptr);
  if (outcome != cl::k_success) {
    complete(failure(outcome));  // the operation may still be running
  } else if (status <= cl::k_complete) {
    // Intel's runtime reports success for commands that it terminated because of a failed
    // dependency, but a wait returns their true outcome. The wait costs 0.15 us here, since the
    // event has completed.
    const EventHandle own = handle();
    complete_with(status < cl::k_complete ? status : calls().wait_for_events(1, &own));
  }
}

void Operation::on_driver_event(EventHandle, Code outcome, void* self) noexcept {
  // Adopts the reference that `arm` retained.
  const auto operation = Ref<Operation>::adopt(static_cast<Operation*>(self));
  operation->complete_with(outcome);
}

void Operation::arm() noexcept {
  const CallOfAnyThread counted;
  if (armed_.exchange(true, std::memory_order_acq_rel) || !counted) {
    return;
  }
  retain();
  const auto outcome = calls().set_callback(handle(), cl::k_complete, on_driver_event, this);
  if (outcome != cl::k_success) {
    complete(call_failed("clSetEventCallback", outcome));
    release();
  }
}

bool Operation::spin() noexcept {
  const auto end = os::Clock::now() + k_spin_before_sleep;
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
  if (!os::drivers_unavailable()) {
    calls().wait_for_events(1, &own);
  }
  refresh();
  if (!settled()) {
    Event::block(until);  // another thread is about to complete it
  }
}

Result<EventTimes> Operation::do_times() {
  if (os::drivers_unavailable()) {
    return driver_unavailable_error();
  }
  EventTimes result;
  const auto query = [&](EventHandle event, Number number, std::uint64_t& time) {
    return calls().get_profile(event, number, sizeof time, &time, nullptr);
  };
  auto* last = inner_ != nullptr ? inner_ : handle();
  auto* begin = first_ != nullptr ? first_ : last;
  for (const auto outcome : {query(begin, cl::k_profile_queued, result.submitted_ns),
                             query(begin, cl::k_profile_started, result.started_ns),
                             query(handle(), cl::k_profile_ended, result.ended_ns)}) {
    if (outcome != cl::k_success) {
      return fail(ISTHMUS_ERROR_UNSUPPORTED,
                  "the times of this operation are not available: {} ({})", code_name(outcome),
                  outcome);
    }
  }
  return result;
}

}  // namespace isthmus::opencl
