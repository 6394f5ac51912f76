// Functions in a queue's order, for drivers that have none of their own.
#include <memory>
#include <utility>

#include "backend/library_threads.hpp"
#include "backend/queue.hpp"
#include "core/undo.hpp"
#include "os/process.hpp"

namespace isthmus {
namespace {

// Runs a function on a thread of the library once the queue has come to it, then lets the queue go
// on.
class function_turn final : public continuation {
 public:
  function_turn(std::unique_ptr<host_function> function, context& home, ref<library_event> ended,
                ref<library_event> gate)
      : function_{std::move(function)},
        home_{&home},
        ended_{std::move(ended)},
        gate_{std::move(gate)} {}

  // In place of being attached.
  [[nodiscard]] std::unique_ptr<host_function> give_back() noexcept { return std::move(function_); }

  void run(event& reached) noexcept override {
    // Where it does not run it is dropped there too: what it owns may call the driver as it goes.
    failed_ = reached.poll() != ISTHMUS_OK;
    before_ = reached.outcome();
    run_on_library_thread([this] { finish(failed_ ? before_ : function_->run(*home_)); },
                          [this](error refused) { finish(std::move(refused)); });
  }

 private:
  void finish(error outcome) noexcept {
    // Counted to the end: the caller that waits for `ended_` may end the process, which then waits
    // for the rest. What the function owns and the context's last reference may call the driver.
    const os::driver_call calls;
    function_.reset();
    // First, so that it has ended when what comes next on the queue has.
    ended_->finish(std::move(outcome));
    // The queue goes on even if the function failed: that failure is its own event's.
    gate_->finish({});
    delete this;
  }

  std::unique_ptr<host_function> function_;
  ref<context> home_;
  ref<library_event> ended_;
  ref<library_event> gate_;
  bool failed_ = false;
  error before_;
};

}  // namespace

result<ref<event>> queue::do_run(std::unique_ptr<host_function>& function, wait_list after,
                                 function_start& start) {
  if (!where_.can(ISTHMUS_CAN_WAIT_FOR_HOST)) {
    return fail(ISTHMUS_ERROR_UNSUPPORTED, "{} cannot wait for functions of the host",
                where_.properties().filter);
  }
  auto ended = make_ref<library_event>();
  auto gate = make_ref<library_event>();
  auto turn = std::make_unique<function_turn>(std::move(function), home_, ended, gate);
  undo given_back{[&] { function = turn->give_back(); }};
  auto reached = do_fence(after);
  if (!reached) {
    return reached.take_error();
  }
  auto held = knows(*gate) ? result<ref<event>>{ref<event>{gate}} : import(*gate);
  if (held) {
    held = do_fence(std::span{&*held, 1});
  }
  if (!held) {
    gate->finish({});
    return held.take_error();
  }
  given_back.dismiss();
  start = {*std::move(reached), turn.release()};
  return ref<event>{ended};
}

}  // namespace isthmus
