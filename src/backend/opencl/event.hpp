// SPDX-License-Identifier: Apache-2.0
#pragma once
// Events of OpenCL: of operations, and of external events that operations wait for (gate.hpp).
// Thread-safe.

#include <atomic>
#include <vector>

#include "backend/device.hpp"
#include "backend/event.hpp"
#include "backend/opencl/api.hpp"

namespace isthmus::opencl {

class gate;
class platform;
// The gates that an operation waits for, directly or through the operations that it waits for.
using gate_list = std::vector<ref<gate>>;

class driver_event : public event {
 public:
  // Takes over one reference to `handle`, which may be null at first.
  driver_event(const platform& driver, context_handle home, event_handle handle) noexcept
      : driver_{driver}, home_{home}, handle_{handle} {}
  ~driver_event() override;

  [[nodiscard]] context_handle home() const noexcept { return home_; }
  [[nodiscard]] event_handle handle() const noexcept { return handle_; }
  [[nodiscard]] void* native() noexcept override { return handle_; }
  // Adds to `all` the gates whose failure is also the failure of this event.
  virtual void add_gates(gate_list& all) = 0;
  // Whether the driver may still end it with an error because a gate failed.
  [[nodiscard]] bool may_be_ended();

 protected:
  [[nodiscard]] const platform& driver() const noexcept { return driver_; }
  void set_handle(event_handle handle) noexcept { handle_ = handle; }

 private:
  const platform& driver_;
  context_handle home_;
  event_handle handle_;
};

// The driver's events of one operation, which may consist of several commands.
struct operation_events {
  event_handle first = nullptr;  // null if there is only one command
  event_handle last = nullptr;
  event_handle closing = nullptr;  // of a barrier after the commands; null if there is none
};

// The event of an operation. It completes with the last event of its commands.
class operation final : public driver_event {
 public:
  operation(const platform& driver, context_handle home, const isthmus::device& where,
            gate_list gates) noexcept;
  ~operation() override;

  // Takes over those events. Pre: no other thread knows this object yet.
  void submitted(const operation_events& made) noexcept {
    first_ = made.first;
    inner_ = made.closing != nullptr ? made.last : nullptr;
    set_handle(made.closing != nullptr ? made.closing : made.last);
  }
  void add_gates(gate_list& all) override;
  [[nodiscard]] result<event_times> times() override;
  [[nodiscard]] const void* clock() const noexcept override { return &where_; }

 protected:
  void refresh() noexcept override;
  void arm() noexcept override;
  void block(const os::deadline& until) noexcept override;

 private:
  static void on_driver_event(event_handle, code outcome, void* self) noexcept;
  // `outcome`: 0, or the error with which the driver ended the last event.
  void settle(code outcome) noexcept;
  [[nodiscard]] code outcome_of_parts() const noexcept;
  [[nodiscard]] error failure_of_gates() const;
  [[nodiscard]] error failure(code outcome) const;
  [[nodiscard]] bool spin() noexcept;

  const isthmus::device& where_;
  event_handle first_ = nullptr;
  event_handle inner_ = nullptr;
  gate_list gates_;
  // Set by the one thread that registers the callback.
  std::atomic<bool> armed_{false};
};

}  // namespace isthmus::opencl
