// SPDX-License-Identifier: Apache-2.0
#pragma once
// OpenCL events: those of operations, and those that represent external events (gate.hpp).
// Thread-safe.

#include <atomic>
#include <vector>

#include "backend/device.hpp"
#include "backend/event.hpp"
#include "backend/opencl/api.hpp"

namespace isthmus::opencl {

class Gate;
class Platform;
// The gates that an operation waits for, directly or through the operations that it waits for.
using GateList = std::vector<Ref<Gate>>;

class DriverEvent : public Event {
 public:
  // Takes ownership of one reference to `handle`, which may be null until `set_handle`.
  DriverEvent(const Platform& driver, ContextHandle context, EventHandle handle) noexcept
      : driver_{driver}, context_{context}, handle_{handle} {}
  ~DriverEvent() override;

  [[nodiscard]] ContextHandle context() const noexcept { return context_; }
  [[nodiscard]] EventHandle handle() const noexcept { return handle_; }
  [[nodiscard]] void* native() noexcept override { return handle_; }
  // Adds to `all` the gates whose failure is also the failure of this event.
  virtual void add_gates(GateList& all) = 0;
  // Whether the driver may still terminate the command of this event because a gate failed.
  [[nodiscard]] bool may_be_ended();

 protected:
  [[nodiscard]] const Platform& driver() const noexcept { return driver_; }
  void set_handle(EventHandle handle) noexcept { handle_ = handle; }

 private:
  const Platform& driver_;
  ContextHandle context_;
  EventHandle handle_;
};

// The driver's events of one operation, which may consist of several commands.
struct OperationEvents {
  EventHandle first = nullptr;  // null if there is only one command
  EventHandle last = nullptr;
  EventHandle closing = nullptr;  // of a barrier after the commands; null if there is none
};

// The event of an operation. It completes with the last event of its commands.
class Operation final : public DriverEvent {
 public:
  Operation(const Platform& driver, ContextHandle context, const isthmus::Device& device,
            GateList gates) noexcept;
  ~Operation() override;

  // Takes ownership of these events. Pre: no other thread can access this object yet.
  void submitted(const OperationEvents& events) noexcept {
    first_ = events.first;
    inner_ = events.closing != nullptr ? events.last : nullptr;
    set_handle(events.closing != nullptr ? events.closing : events.last);
  }
  void add_gates(GateList& all) override;
  [[nodiscard]] Result<EventTimes> times() override;
  [[nodiscard]] const void* clock() const noexcept override { return &device_; }

 protected:
  void refresh() noexcept override;
  void arm() noexcept override;
  void block(const os::Deadline& until) noexcept override;

 private:
  static void on_driver_event(EventHandle, Code outcome, void* self) noexcept;
  // `outcome`: 0, or the error with which the driver ended the last event.
  void complete_with(Code outcome) noexcept;
  [[nodiscard]] Code outcome_of_commands() const noexcept;
  [[nodiscard]] Error failure_of_gates() const;
  [[nodiscard]] Error failure(Code outcome) const;
  [[nodiscard]] bool spin() noexcept;

  const isthmus::Device& device_;
  EventHandle first_ = nullptr;
  EventHandle inner_ = nullptr;
  GateList gates_;
  // Set by the thread that registers the callback, so that it is registered once.
  std::atomic<bool> armed_{false};
};

}  // namespace isthmus::opencl
