// SPDX-License-Identifier: Apache-2.0
#include "backend/opencl/gate.hpp"

#include <algorithm>
#include <system_error>

#include "backend/opencl/errors.hpp"
#include "core/expects.hpp"
#include "core/lock_guard.hpp"
#include "core/mutex.hpp"
#include "core/never_destroyed.hpp"
#include "core/thread_safety.hpp"
#include "core/threads.hpp"
#include "os/process.hpp"

namespace isthmus::opencl {

// The thread that opens gates. There is one per process; it starts with the first gate and never
// ends.
class GateKeeper {
 public:
  // Never destroyed, since it must outlive every thread.
  static GateKeeper& instance() {
    static NeverDestroyed<GateKeeper> keeper;
    return *keeper;
  }
  // Takes ownership of one reference. Does not allocate; the lock is held for a few instructions.
  void enqueue(Gate& ready) noexcept {
    const LockGuard hold{lock_};
    ready.next_ = first_;
    first_ = &ready;
    changed_.notify_one();
  }

 private:
  friend NeverDestroyed<GateKeeper>;

  GateKeeper() {
    start_thread([this] { serve(); }).detach();
  }
  void serve() noexcept {
    UniqueLock hold{lock_};
    for (;;) {
      while (first_ == nullptr) {
        changed_.wait(lock_);
      }
      auto* ready = std::exchange(first_, nullptr);
      hold.unlock();
      while (ready != nullptr) {
        auto* next = ready->next_;
        if (ready->open()) {
          ready->release();
        }
        ready = next;
      }
      hold.lock();
    }
  }

  Mutex lock_;
  ConditionVariable changed_;
  Gate* first_ ISTHMUS_GUARDED_BY(lock_) = nullptr;
};

Result<Ref<Gate>> Gate::create(const NativeContext& context, Event& foreign, bool ends_dependents) {
  try {
    static_cast<void>(GateKeeper::instance());
  } catch (const std::system_error& cause) {
    return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
                "cannot start the thread that lets queues wait for the host: {}", cause.what());
  }
  cl_int outcome = CL_SUCCESS;
  auto* handle = context.driver.calls.create_user_event(context.handle, &outcome);
  if (handle == nullptr) {
    return call_failed("clCreateUserEvent", outcome);
  }
  auto gate = make_ref<Gate>(context, handle, ends_dependents);
  gate->retain();  // released after the gate was opened
  if (context.driver.needs_drain_at_exit) {
    ExitDrain::instance().add(*gate);
  }
  foreign.on_complete(*gate);
  return gate;
}

Result<Ref<Gate>> Gate::join(const GateList& gates, bool ends_dependents) {
  ISTHMUS_EXPECTS(gates.size() >= 2, gates.size());
  const std::vector<Ref<Event>> joined{gates.begin(), gates.end()};
  const auto outcome = outcome_of_all(joined);
  return create(gates.front()->context(), *outcome, ends_dependents);
}

void Gate::run(Event& completed) noexcept {
  // Completes the gate before it opens, so that operations that wait for it read its outcome.
  complete(completed.outcome());
  if (!os::drivers_unavailable()) {
    GateKeeper::instance().enqueue(*this);
  }
}

bool Gate::open() noexcept {
  const os::DriverCall call;
  if (!call) {
    return false;
  }
  ExitDrain::instance().remove(*this);
  const bool end = ends_dependents_ && poll() < ISTHMUS_OK;
  calls().set_user_event(handle(),
                         end ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : CL_COMPLETE);
  return true;
}

void Gate::end_unopened() noexcept {
  calls().set_user_event(
      handle(), ends_dependents_ ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : CL_COMPLETE);
}

Error Gate::failure_of_dependents() const {
  ISTHMUS_EXPECTS(settled() && !succeeded());
  if (ends_dependents_) {
    return failed_dependency(outcome());
  }
  return fail(ISTHMUS_ERROR_DEPENDENCY,
              "an event that the operation waited for failed: {}; this driver cannot cancel "
              "operations on this queue, so the operation ran and its results are invalid",
              outcome().message());
}

bool may_be_ended_by_gate(DriverEvent& event) {
  GateList gates;
  event.add_gates(gates);
  return std::any_of(gates.begin(), gates.end(),
                     [](const auto& gate) { return gate->ends_dependents(); });
}

}  // namespace isthmus::opencl
