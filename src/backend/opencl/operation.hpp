// SPDX-License-Identifier: Apache-2.0
#pragma once
// The event of an operation. Thread-safe.

#include <atomic>

#include "backend/device.hpp"
#include "backend/opencl/event.hpp"
#include "backend/opencl/gate.hpp"

namespace isthmus::opencl {

// The driver's events of one operation, which may consist of several commands.
struct OperationEvents {
  cl_event first = nullptr;  // null if there is only one command
  cl_event last = nullptr;
  cl_event closing = nullptr;  // of a barrier after the commands; null if there is none
};

// The event of an operation. It completes with the last event of its commands.
class Operation final : public DriverEvent {
 public:
  Operation(const NativeContext& context, const isthmus::Device& device, GateList gates) noexcept;
  ~Operation() override;

  // Takes ownership of these events. Called before another thread can access this object.
  void submitted(const OperationEvents& events) noexcept {
    first_ = events.first;
    inner_ = events.closing != nullptr ? events.last : nullptr;
    set_handle(events.closing != nullptr ? events.closing : events.last);
  }
  void add_gates(GateList& all) override;
  [[nodiscard]] const void* clock() const noexcept override { return &device_; }

 protected:
  [[nodiscard]] Result<EventTimes> do_times() override;
  void refresh() noexcept override;
  void arm() noexcept override;
  void block(const os::Deadline& until) noexcept override;

 private:
  static void on_driver_event(cl_event, cl_int outcome, void* self) noexcept;
  // `outcome`: 0, or the error with which the driver ended the last event.
  void complete_with(cl_int outcome) noexcept;
  [[nodiscard]] cl_int outcome_of_commands() const noexcept;
  [[nodiscard]] Error failure_of_gates() const;
  [[nodiscard]] Error failure(cl_int outcome) const;
  [[nodiscard]] bool spin() noexcept;

  const isthmus::Device& device_;
  cl_event first_ = nullptr;
  cl_event inner_ = nullptr;
  GateList gates_;
  // Set by the thread that registers the callback, so that it is registered once.
  std::atomic<bool> armed_{false};
};

}  // namespace isthmus::opencl
