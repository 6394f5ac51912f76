// SPDX-License-Identifier: Apache-2.0
#include "backend/host_function.hpp"

#include <utility>

#include "backend/library_threads.hpp"
#include "os/process.hpp"

namespace isthmus {

FunctionContinuation::FunctionContinuation(std::unique_ptr<HostFunction> function, Context& context,
                                           Ref<LibraryEvent> end_event, Ref<LibraryEvent> gate)
    : function_{std::move(function)},
      context_{&context},
      end_event_{std::move(end_event)},
      gate_{std::move(gate)} {}

std::unique_ptr<HostFunction> FunctionContinuation::release_function() noexcept {
  return std::move(function_);
}

void FunctionContinuation::run(Event& start_event) noexcept {
  // A function that does not run is destroyed on the library thread too, since objects that it
  // owns may call the driver when destroyed.
  start_failed_ = start_event.poll() != ISTHMUS_OK;
  start_error_ = start_event.outcome();
  run_on_library_thread(
      [this] { finish(start_failed_ ? start_error_ : function_->call(*context_)); },
      [this](Error error) { finish(std::move(error)); });
}

void FunctionContinuation::finish(Error outcome) noexcept {
  // Counts as a driver call until this function returns: objects that the host function owns, and
  // the last reference to the context, may call the driver when released. A thread that waits for
  // `end_event_` may exit the process, which then waits for this call.
  const os::DriverCall calls;
  function_.reset();
  // Completed before the gate, so that the function's event has completed when a later operation
  // on the queue completes.
  end_event_->finish(std::move(outcome));
  // The queue continues even if the function failed; `end_event_` reports the failure.
  gate_->finish({});
  delete this;
}

}  // namespace isthmus
