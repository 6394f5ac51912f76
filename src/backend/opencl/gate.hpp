// SPDX-License-Identifier: Apache-2.0
#pragma once
// A gate: an OpenCL user event that represents an external event, of the host or of another
// platform. The gate opens (the user event is set) when the external event has completed. Commands
// that wait for a gate wait in the driver. Thread-safe.
//
// The effect of a failed external event depends on the driver (DeviceTraits::ends_dependents). If a
// failed user event terminates only its dependents, the user event fails and they do not run. With
// other drivers the gate opens as if the external event had succeeded, since the driver would hang,
// crash or drop everything queued after the user event. The dependents then run, even if their
// source data is invalid. In both cases their events fail with DEPENDENCY, and later operations
// run.
//
// A library thread sets the user event, because a continuation must not call a driver. Moreover,
// Intel's runtime completes commands inside clSetUserEventStatus and runs their callbacks there.

#include "backend/opencl/event.hpp"
#include "backend/workarounds/exit_drain.hpp"

namespace isthmus::opencl {

class Gate final : public DriverEvent, public DrainedGate, private Continuation {
 public:
  // OUT_OF_MEMORY or DRIVER if the gate cannot be created.
  [[nodiscard]] static Result<Ref<Gate>> create(const NativeContext& context, Event& foreign,
                                                bool ends_dependents);
  // Creates a gate that replaces several others: it opens once all have completed, with the outcome
  // of the first one that failed. The gates belong to one context.
  [[nodiscard]] static Result<Ref<Gate>> join(const GateList& gates, bool ends_dependents);

  Gate(const NativeContext& context, cl_event handle, bool ends_dependents) noexcept
      : DriverEvent{context, handle}, ends_dependents_{ends_dependents} {}

  void add_gates(GateList& all) override { all.emplace_back(this); }
  [[nodiscard]] bool ends_dependents() const noexcept { return ends_dependents_; }
  // For a gate that has failed.
  [[nodiscard]] Error failure_of_dependents() const;
  // Sets the user event. Called on the thread that opens gates. Returns false if the process is
  // exiting: the gate then remains in the list of ExitDrain, which calls `end_unopened`.
  [[nodiscard]] bool open() noexcept;
  [[nodiscard]] Ref<Event> reference() noexcept override { return Ref<Event>{this}; }
  void end_unopened() noexcept override;

 private:
  friend class GateKeeper;
  void run(Event& completed) noexcept override;

  bool ends_dependents_;
  Gate* next_ = nullptr;
};

// Whether the driver may still terminate the command of `event` because a gate failed.
[[nodiscard]] bool may_be_ended_by_gate(DriverEvent& event);

}  // namespace isthmus::opencl
