#pragma once
// A gate: an event of ours that opens when a foreign event, of the host or of another platform, has
// completed. It is a user event of OpenCL; whatever waits for it waits in the driver.
//
// What a failed foreign event does depends on the driver (device_traits::ends_dependents). Where a
// failed user event ends just its dependents, they do not run. Elsewhere the gate opens as if
// nothing had happened, since the driver would hang, crash or drop what is queued behind: then they
// run, on whatever their source holds. In both cases their events fail with DEPENDENCY, and later
// operations run.
//
// The user event is set on a thread of its own: a continuation must not call a driver, and Intel's
// runtime runs the callbacks of whatever it ends inside clSetUserEventStatus.

#include "backend/opencl/event.hpp"
#include "backend/opencl/farewell.hpp"

namespace isthmus::opencl {

class gate final : public driver_event, public in_farewell, private continuation {
 public:
  // OUT_OF_MEMORY or DRIVER if it cannot be made.
  [[nodiscard]] static result<ref<gate>> create(const platform& driver, context_handle home,
                                                event& foreign, bool ends_dependents);
  // Stands in for several: opens once all have completed, as the first that failed. Pre: two or
  // more, of one context.
  [[nodiscard]] static result<ref<gate>> join(const gate_list& gates, bool ends_dependents);

  gate(const platform& driver, context_handle home, event_handle handle,
       bool ends_dependents) noexcept
      : driver_event{driver, home, handle}, ends_dependents_{ends_dependents} {}

  void add_gates(gate_list& all) override { all.emplace_back(this); }
  [[nodiscard]] bool ends_dependents() const noexcept { return ends_dependents_; }
  // Pre: it has failed.
  [[nodiscard]] error failure_of_dependents() const;
  // Tells the driver; on the thread that may. False once the process is ending: then the gate stays
  // for `end_unopened`.
  [[nodiscard]] bool open() noexcept;
  // As the process ends: fails what stands behind it, or lets it run where the driver cannot.
  void end_unopened() noexcept;

 private:
  friend class gate_keeper;
  void run(event& completed) noexcept override;

  bool ends_dependents_;
  gate* next_ = nullptr;
};

}  // namespace isthmus::opencl
