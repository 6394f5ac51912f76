#include "transfer/host_driven.hpp"

#include <functional>

#include "backend/library_threads.hpp"
#include "backend/queue.hpp"
#include "os/process.hpp"

namespace isthmus {

host_driven::host_driven(const endpoint& destination, const endpoint& source, const pitched& shape)
    : destination_{destination.memory}, source_{source.memory} {
  touched_.add(destination, shape.extent(shape.destination_pitch), true);
  touched_.add(source, shape.extent(shape.source_pitch), false);
}

result<void> host_driven::await_turn() const {
  ISTHMUS_TRY(wait_for_all(after_));
  let_end(before_);
  return {};
}

error host_driven::run_guarded() noexcept try {
  return move().take_error();
} catch (const std::bad_alloc&) {
  return fail(ISTHMUS_ERROR_OUT_OF_MEMORY, "no host memory for the pieces of a copy");
}

// On a thread of the library. Nothing of a driver's is left when it is told to have ended: the end
// of the process may follow at once.
error host_driven::run_to_the_end() noexcept {
  auto outcome = await_turn().take_error();
  const os::driver_call calls;
  if (!calls) {
    return fail(ISTHMUS_ERROR_FORKED, "the process is ending");
  }
  if (!outcome) {
    outcome = run_guarded();
  }
  let_go();
  destination_ = nullptr;
  source_ = nullptr;
  after_.clear();
  before_.clear();
  return outcome;
}

// The copy waits on a thread of its own; later work on `on` waits for it.
submitted host_driven::run_behind(queue& on, const std::shared_ptr<host_driven>& copy) {
  const ref<event> done{copy->done_};
  // Made before the fence: once that waits for `done`, nothing may keep it from ending.
  std::function<void()> work = [copy] {
    auto outcome = copy->run_to_the_end();
    const auto ended = copy->done_;
    copy->owners_.clear();
    ended->finish(std::move(outcome));
  };
  std::function<void(error)> refuse = [copy](error refused) {
    copy->done_->finish(std::move(refused));
  };
  auto gate = on.fence(std::span{&done, 1});
  if (!gate) {
    copy->done_->finish({});
    return gate;
  }
  copy->touched_.publish(nullptr, done);
  run_on_library_thread(std::move(work), std::move(refuse));
  return done;
}

submitted carry_out(queue& on, const std::shared_ptr<host_driven>& copy, transfer_options options) {
  copy->touched_.collect(nullptr, copy->before_);
  ISTHMUS_TRY(copy->touched_.collect_queues(&on, copy->before_));
  copy->after_ = std::move(options.after);
  copy->owners_ = std::move(options.owners);
  if (!options.blocking && on.where().can(ISTHMUS_CAN_WAIT_FOR_HOST)) {
    return host_driven::run_behind(on, copy);
  }
  ISTHMUS_TRY(copy->await_turn());
  ISTHMUS_TRY(copy->move());
  return options.blocking ? ref<event>{} : completed_event();
}

}  // namespace isthmus
