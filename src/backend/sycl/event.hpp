// SPDX-License-Identifier: Apache-2.0
#pragma once
// The event of an operation. SYCL has no completion callbacks, so the event is polled. Thread-safe.

#include "backend/context.hpp"
#include "backend/polled_event.hpp"
#include "backend/sycl/reference.hpp"

namespace isthmus::sycl {

class Operation final : public PolledEvent {
 public:
  // `owner`, which keeps an adopted event alive, is released with this object.
  Operation(isthmus::Context& context, const Api& calls, Owner owner = {}) noexcept
      : owner_{std::move(owner)}, context_{&context}, calls_{calls} {}

  [[nodiscard]] const isthmus::Context& context() const noexcept { return *context_; }
  [[nodiscard]] EventReference reference() const noexcept { return reference_.get(); }
  [[nodiscard]] void* native() noexcept override {
    return is_enqueued() ? reference_.get() : nullptr;
  }
  // Called when the driver has received the operation.
  void submitted(OwnedEvent reference) noexcept;

 protected:
  // UNSUPPORTED for queues created without profiling, such as the library's own: with profiling a
  // command of Intel's CPU runtime takes 4 us more.
  [[nodiscard]] Result<EventTimes> do_times() override;
  void refresh() noexcept override;
  void block(const os::Deadline& until) noexcept override;

 private:
  Owner owner_;
  Ref<isthmus::Context> context_;
  const Api& calls_;
  OwnedEvent reference_;
};

// The event of work that the host performs in queue order. The thread that performs the work
// completes the event, so the event is not polled.
class HostOperation final : public PolledEvent {
 public:
  void finish() noexcept {
    mark_enqueued();
    complete({});
  }

 protected:
  void arm() noexcept override {}
  void block(const os::Deadline& until) noexcept override { Event::block(until); }
};

}  // namespace isthmus::sycl
