// SPDX-License-Identifier: Apache-2.0
// Functions in queue order, for drivers without functions of their own.
#include <memory>
#include <utility>

#include "backend/library_threads.hpp"
#include "backend/queue.hpp"
#include "core/undo.hpp"
#include "os/process.hpp"

namespace isthmus {
namespace {

// Runs a function on a library thread once the queue has reached it, then lets the queue continue.
class FunctionTurn final : public Continuation {
 public:
  FunctionTurn(std::unique_ptr<HostFunction> function, Context& context, Ref<LibraryEvent> ended,
               Ref<LibraryEvent> gate)
      : function_{std::move(function)},
        context_{&context},
        ended_{std::move(ended)},
        gate_{std::move(gate)} {}

  // Called instead of attaching this object.
  [[nodiscard]] std::unique_ptr<HostFunction> give_back() noexcept { return std::move(function_); }

  void run(Event& reached) noexcept override {
    // A function that does not run is destroyed on the library thread too, since what it owns may
    // call the driver when destroyed.
    failed_ = reached.poll() != ISTHMUS_OK;
    before_ = reached.outcome();
    run_on_library_thread([this] { finish(failed_ ? before_ : function_->run(*context_)); },
                          [this](Error refused) { finish(std::move(refused)); });
  }

 private:
  void finish(Error outcome) noexcept {
    // Counted until the end of this function: a caller that waits for `ended_` may end the process,
    // which then waits for the rest. What the function owns and the last reference to the context
    // may call the driver when released.
    const os::DriverCall calls;
    function_.reset();
    // Before the gate, so that the function has ended when the next operation on the queue ends.
    ended_->finish(std::move(outcome));
    // The queue continues even if the function failed; `ended_` reports the failure.
    gate_->finish({});
    delete this;
  }

  std::unique_ptr<HostFunction> function_;
  Ref<Context> context_;
  Ref<LibraryEvent> ended_;
  Ref<LibraryEvent> gate_;
  bool failed_ = false;
  Error before_;
};

}  // namespace

Result<Ref<Event>> Queue::do_run(std::unique_ptr<HostFunction>& function, WaitList after,
                                 FunctionStart& start) {
  if (!device_.can(ISTHMUS_CAN_WAIT_FOR_HOST)) {
    return fail(ISTHMUS_ERROR_UNSUPPORTED, "{} cannot wait for host functions",
                device_.properties().filter);
  }
  auto ended = make_ref<LibraryEvent>();
  auto gate = make_ref<LibraryEvent>();
  auto turn = std::make_unique<FunctionTurn>(std::move(function), context_, ended, gate);
  Undo given_back{[&] { function = turn->give_back(); }};
  auto reached = do_fence(after);
  if (!reached) {
    return reached.take_error();
  }
  auto held = knows(*gate) ? Result<Ref<Event>>{Ref<Event>{gate}} : import(*gate);
  if (held) {
    held = do_fence(std::span{&*held, 1});
  }
  if (!held) {
    gate->finish({});
    return held.take_error();
  }
  given_back.dismiss();
  start = {*std::move(reached), turn.release()};
  return Ref<Event>{ended};
}

}  // namespace isthmus
