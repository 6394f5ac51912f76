// SPDX-License-Identifier: Apache-2.0
#pragma once
// The base of OpenCL events: those of operations (operation.hpp), and those that represent external
// events (gate.hpp). Thread-safe.

#include <vector>

#include "backend/event.hpp"
#include "backend/opencl/driver.hpp"

namespace isthmus::opencl {

class Gate;
// The gates that an operation waits for, directly or through the operations that it waits for.
using GateList = std::vector<Ref<Gate>>;

class DriverEvent : public Event {
 public:
  // Takes ownership of one reference to `handle`, which may be null until `set_handle`.
  DriverEvent(const NativeContext& context, cl_event handle) noexcept
      : context_{context}, handle_{handle} {}
  ~DriverEvent() override;

  [[nodiscard]] const NativeContext& context() const noexcept { return context_; }
  [[nodiscard]] cl_event handle() const noexcept { return handle_; }
  [[nodiscard]] void* native() noexcept override { return handle_; }
  // Adds to `all` the gates whose failure is also the failure of this event.
  virtual void add_gates(GateList& all) = 0;

 protected:
  [[nodiscard]] const Api& calls() const noexcept { return context_.driver.calls; }
  void set_handle(cl_event handle) noexcept { handle_ = handle; }

 private:
  NativeContext context_;
  cl_event handle_;
};

}  // namespace isthmus::opencl
