// SPDX-License-Identifier: Apache-2.0
#pragma once
// A gate: an event of the library that opens when an external event, of the host or of another
// platform, has completed. It is an OpenCL user event; commands that wait for it wait in the
// driver. Thread-safe.
//
// The effect of a failed external event depends on the driver (DeviceTraits::ends_dependents). If a
// failed user event ends only its dependents, they do not run. With other drivers the gate opens as
// if the event had succeeded, since the driver would hang, crash or drop everything queued after
// it. Then the dependents run, with whatever data their source holds. In both cases their events
// fail with DEPENDENCY, and later operations run.
//
// A library thread sets the user event, because a continuation must not call a driver. Besides,
// Intel's runtime ends commands inside clSetUserEventStatus and runs their callbacks there.

#include "backend/opencl/event.hpp"
#include "backend/opencl/exit_drain.hpp"

namespace isthmus::opencl {

class Gate final : public DriverEvent, public DrainedAtExit, private Continuation {
 public:
  // OUT_OF_MEMORY or DRIVER if it cannot be created.
  [[nodiscard]] static Result<Ref<Gate>> create(const Platform& driver, ContextHandle context,
                                                Event& foreign, bool ends_dependents);
  // A gate in place of several others: it opens once all have completed, with the outcome of the
  // first failed one. Pre: two or more gates of one context.
  [[nodiscard]] static Result<Ref<Gate>> join(const GateList& gates, bool ends_dependents);

  Gate(const Platform& driver, ContextHandle context, EventHandle handle,
       bool ends_dependents) noexcept
      : DriverEvent{driver, context, handle}, ends_dependents_{ends_dependents} {}

  void add_gates(GateList& all) override { all.emplace_back(this); }
  [[nodiscard]] bool ends_dependents() const noexcept { return ends_dependents_; }
  // Pre: the gate has failed.
  [[nodiscard]] Error failure_of_dependents() const;
  // Sets the user event; called on the gates' own thread. False once the process is ending: then
  // the gate remains for `end_unopened`.
  [[nodiscard]] bool open() noexcept;
  // At the end of the process: fails the commands that wait for it, or lets them run if the driver
  // cannot fail them.
  void end_unopened() noexcept;

 private:
  friend class GateKeeper;
  void run(Event& completed) noexcept override;

  bool ends_dependents_;
  Gate* next_ = nullptr;
};

}  // namespace isthmus::opencl
