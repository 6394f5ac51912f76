// SPDX-License-Identifier: Apache-2.0
#pragma once
// The event of an operation. SYCL does not notify of its completion, so the event is polled.
// Thread-safe.

#include "backend/late_event.hpp"
#include "backend/sycl/context.hpp"

namespace isthmus::sycl {

class operation final : public late_event {
 public:
  // `keep`, which keeps an adopted event alive, is released with this object.
  explicit operation(context& home, owner keep = {}) noexcept
      : keep_{std::move(keep)}, home_{&home} {}

  [[nodiscard]] const context& home() const noexcept { return *home_; }
  [[nodiscard]] event_reference reference() const noexcept { return reference_.get(); }
  [[nodiscard]] void* native() noexcept override { return is_put() ? reference_.get() : nullptr; }
  // Called once the driver has the operation.
  void submitted(owned_event reference) noexcept;
  // UNSUPPORTED for queues created without profiling, such as the library's own: with profiling a
  // command of Intel's CPU runtime takes 4 us more.
  [[nodiscard]] result<event_times> times() override;

 protected:
  void refresh() noexcept override;
  void block(const os::deadline& until) noexcept override;

 private:
  owner keep_;
  ref<context> home_;
  owned_event reference_;
};

// The event of work that the host does in queue order. The thread that does it completes the event,
// so it is not polled.
class host_operation final : public late_event {
 public:
  void finish() noexcept {
    mark_put();
    complete({});
  }

 protected:
  void arm() noexcept override {}
  void block(const os::deadline& until) noexcept override { event::block(until); }
};

}  // namespace isthmus::sycl
