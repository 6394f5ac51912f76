#pragma once
// The event of one operation. SYCL tells nobody of its end: it is asked for.

#include "backend/late_event.hpp"
#include "backend/sycl/context.hpp"

namespace isthmus::sycl {

class operation final : public late_event {
 public:
  // `keep` is released with it: whoever an adopted one belongs to.
  explicit operation(context& home, owner keep = {}) noexcept
      : keep_{std::move(keep)}, home_{&home} {}

  [[nodiscard]] const context& home() const noexcept { return *home_; }
  [[nodiscard]] event_reference reference() const noexcept { return reference_.get(); }
  [[nodiscard]] void* native() noexcept override { return is_put() ? reference_.get() : nullptr; }
  // The driver has it.
  void submitted(owned_event reference) noexcept;
  // UNSUPPORTED for queues made without profiling, such as ours: with it a command of Intel's CPU
  // runtime takes 4 us more.
  [[nodiscard]] result<event_times> times() override;

 protected:
  void refresh() noexcept override;
  void block(const os::deadline& until) noexcept override;

 private:
  owner keep_;
  ref<context> home_;
  owned_event reference_;
};

// Of what the host does in the queue's turn. Nobody has to ask for its end.
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
