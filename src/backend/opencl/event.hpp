#pragma once
// Events of OpenCL: of an operation, and of something foreign that operations wait for (gate.hpp).

#include <atomic>
#include <vector>

#include "backend/event.hpp"
#include "backend/opencl/api.hpp"

namespace isthmus::opencl {

class gate;
class platform;
// The gates behind which an operation stands, its own and those of what it waits for.
using gate_list = std::vector<ref<gate>>;

class driver_event : public event {
 public:
  // Takes over one reference to `handle`, which may still be null.
  driver_event(const platform& driver, context_handle home, event_handle handle) noexcept
      : driver_{driver}, home_{home}, handle_{handle} {}
  ~driver_event() override;

  [[nodiscard]] context_handle home() const noexcept { return home_; }
  [[nodiscard]] event_handle handle() const noexcept { return handle_; }
  [[nodiscard]] void* native() noexcept override { return handle_; }
  // Adds those gates to `all` whose failure is the failure of this event.
  virtual void add_gates(gate_list& all) = 0;
  // Whether the driver may yet end it with an error since a gate failed.
  [[nodiscard]] bool may_be_ended();

 protected:
  [[nodiscard]] const platform& driver() const noexcept { return driver_; }
  void set_handle(event_handle handle) noexcept { handle_ = handle; }

 private:
  const platform& driver_;
  context_handle home_;
  event_handle handle_;
};

// Of one operation, which may have been put to the driver in several parts: its end is the last's.
class operation final : public driver_event {
 public:
  operation(const platform& driver, context_handle home, gate_list gates) noexcept;
  ~operation() override;

  // Takes over the events of the first and the last part, before anybody else knows this object;
  // `first` is null where there is only one.
  void submitted(event_handle first, event_handle last) noexcept {
    first_ = first;
    set_handle(last);
  }
  void add_gates(gate_list& all) override;
  [[nodiscard]] result<event_times> times() override;

 protected:
  void refresh() noexcept override;
  void arm() noexcept override;
  void block(const os::deadline& until) noexcept override;

 private:
  static void on_driver_event(event_handle, code outcome, void* self) noexcept;
  // `outcome`: 0 or the error that the driver ended it with.
  void settle(code outcome) noexcept;
  [[nodiscard]] error failure_of_gates() const;
  [[nodiscard]] error failure(code outcome) const;
  [[nodiscard]] bool spin() noexcept;

  event_handle first_ = nullptr;
  gate_list gates_;
  std::atomic<bool> armed_{false};
};

}  // namespace isthmus::opencl
