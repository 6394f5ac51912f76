// SPDX-License-Identifier: Apache-2.0
// Runs host functions in queue order, for drivers that cannot run host functions themselves.
#include <memory>
#include <utility>

#include "backend/library_threads.hpp"
#include "backend/queue.hpp"
#include "core/undo.hpp"
#include "os/process.hpp"

namespace isthmus {
namespace {

// Runs a function on a library thread once all earlier work on the queue has completed, then opens
// the gate that delays later work.
class FunctionContinuation final : public Continuation {
 public:
  FunctionContinuation(std::unique_ptr<HostFunction> function, Context& context,
                       Ref<LibraryEvent> end_event, Ref<LibraryEvent> gate)
      : function_{std::move(function)},
        context_{&context},
        end_event_{std::move(end_event)},
        gate_{std::move(gate)} {}

  // Called instead of attaching this object.
  [[nodiscard]] std::unique_ptr<HostFunction> release_function() noexcept {
    return std::move(function_);
  }

  void run(Event& start_event) noexcept override {
    // A function that does not run is destroyed on the library thread too, since objects that it
    // owns may call the driver when destroyed.
    start_failed_ = start_event.poll() != ISTHMUS_OK;
    start_error_ = start_event.outcome();
    run_on_library_thread(
        [this] { finish(start_failed_ ? start_error_ : function_->run(*context_)); },
        [this](Error error) { finish(std::move(error)); });
  }

 private:
  void finish(Error outcome) noexcept {
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

  std::unique_ptr<HostFunction> function_;
  Ref<Context> context_;
  Ref<LibraryEvent> end_event_;
  Ref<LibraryEvent> gate_;
  bool start_failed_ = false;
  Error start_error_;
};

}  // namespace

Result<Ref<Event>> Queue::do_run(std::unique_ptr<HostFunction>& function, WaitList after,
                                 FunctionStart& start) {
  if (!device_.can(ISTHMUS_CAN_WAIT_FOR_HOST)) {
    return fail(ISTHMUS_ERROR_UNSUPPORTED,
                "{} cannot wait for host functions: it lacks the capability \"wait_for_host\"",
                device_.properties().filter);
  }
  auto end_event = make_ref<LibraryEvent>();
  auto gate = make_ref<LibraryEvent>();
  auto continuation =
      std::make_unique<FunctionContinuation>(std::move(function), context_, end_event, gate);
  Undo restore_function{[&] { function = continuation->release_function(); }};
  auto start_event = do_fence(after);
  if (!start_event) {
    return start_event.take_error();
  }
  auto gate_event = can_wait_for(*gate) ? Result<Ref<Event>>{Ref<Event>{gate}} : import(*gate);
  if (gate_event) {
    gate_event = do_fence(std::span{&*gate_event, 1});
  }
  if (!gate_event) {
    gate->finish({});
    return gate_event.take_error();
  }
  restore_function.dismiss();
  start = {*std::move(start_event), continuation.release()};
  return Ref<Event>{end_event};
}

}  // namespace isthmus
