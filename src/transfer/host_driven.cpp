// SPDX-License-Identifier: Apache-2.0
#include "transfer/host_driven.hpp"

#include <functional>

#include "backend/library_threads.hpp"
#include "backend/queue.hpp"
#include "core/undo.hpp"
#include "os/process.hpp"

namespace isthmus {

host_driven::host_driven(const movement& what)
    : destination_{what.destination.memory}, source_{what.source.memory} {
  touched_.add(what.destination, what.destination_bytes, true);
  touched_.add(what.source, what.source_bytes, false);
}

// Work that other libraries submitted to a default stream comes first, and only the driver knows
// it.
result<void> host_driven::collect(queue* on) {
  touched_.collect(nullptr, before_);
  if (on != nullptr && on->is_everybodys()) {
    auto reached = on->fence({});
    ISTHMUS_TRY(reached);
    before_.push_back(*std::move(reached));
  }
  return touched_.collect_queues(on, before_);
}

result<void> host_driven::await_turn() const {
  ISTHMUS_TRY(wait_for_all(after_));
  let_end(before_);
  return {};
}

error host_driven::run_guarded() noexcept try {
  return move().take_error();
} catch (const std::bad_alloc&) {
  return fail(ISTHMUS_ERROR_OUT_OF_MEMORY, "no host memory for the intermediate storage of a copy");
}

// Runs on a library thread. No driver object is left when the end is reported, since the process
// may exit immediately afterwards. It ends after everything that it is ordered after, even if it
// fails: for later users of the memory its end implies theirs.
error host_driven::run_to_the_end() noexcept {
  auto outcome = await_turn().take_error();
  if (outcome) {
    let_end(after_);
    let_end(before_);
  }
  const os::driver_call calls;
  if (!calls) {
    return fail(ISTHMUS_ERROR_FORKED, "the process is ending");
  }
  if (!outcome) {
    outcome = run_guarded();
  }
  forget();
  return outcome;
}

void host_driven::forget() noexcept {
  let_go();
  touched_.give_up();
  destination_ = nullptr;
  source_ = nullptr;
  after_.clear();
  before_.clear();
}

// Waits and copies on a library thread; later work on `on` waits for it. Nothing fails or blocks
// after the fence is submitted: `done` may depend on events that the caller completes only once
// this has returned.
submitted host_driven::run_behind(queue* on, const std::shared_ptr<host_driven>& what) {
  const ref<event> done{what->done_};
  auto work = reserved_work::make([what] {
    auto outcome = what->run_to_the_end();
    const auto ended = what->done_;
    what->owners_.clear();
    ended->finish(std::move(outcome));
  });
  ISTHMUS_TRY(work);
  what->touched_.reserve();
  if (on != nullptr) {
    undo released{[&] { what->done_->finish({}); }};
    ISTHMUS_TRY(on->fence(std::span{&done, 1}));
    released.dismiss();
  }
  what->touched_.publish(nullptr, done);
  work->start();
  return done;
}

submitted carry_out(queue* on, const std::shared_ptr<host_driven>& what, transfer_options options) {
  ISTHMUS_TRY(what->collect(on));
  what->touched_.add_contents(options);
  what->after_ = std::move(options.after);
  what->owners_ = std::move(options.owners);
  if (!options.blocking && (on == nullptr || on->where().can(ISTHMUS_CAN_WAIT_FOR_HOST))) {
    return host_driven::run_behind(on, what);
  }
  const undo forgotten{[&] {  // other references to it may remain
    what->forget();
    what->owners_.clear();
  }};
  ISTHMUS_TRY(what->await_turn());
  ISTHMUS_TRY(what->move());
  return options.blocking ? ref<event>{} : completed_event();
}

}  // namespace isthmus
