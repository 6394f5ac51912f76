#pragma once
// The event of one operation, behind which it was recorded. One that is held back (queue.hpp) is
// not known to the driver yet.

#include "backend/cuda/device.hpp"
#include "backend/event.hpp"

namespace isthmus::cuda {

class operation final : public event {
 public:
  // Takes over `handle`; `knows_time`: it was made so.
  operation(const device& where, event_handle handle, bool knows_time) noexcept
      : where_{where}, handle_{handle}, knows_time_{knows_time} {}
  ~operation() override;

  [[nodiscard]] event_handle handle() const noexcept { return handle_; }
  [[nodiscard]] void* native() noexcept override { return handle_; }
  [[nodiscard]] result<std::int64_t> elapsed_since(event& earlier) override;
  // Or it failed before the driver got it.
  [[nodiscard]] bool is_put() const noexcept override {
    return (progress_.load(std::memory_order_acquire) & k_put) != 0;
  }
  void mark_put() noexcept;
  // In place of being put.
  void refuse(error why) noexcept;
  // False if it was not by the deadline.
  [[nodiscard]] bool wait_till_put(const os::deadline& until) noexcept;

 protected:
  void refresh() noexcept override;
  // Has a thread of the library look at it. CUDA's own ways are worse: a host function holds up the
  // stream that it stands in and is never called once the context is lost.
  void arm() noexcept override;
  void block(const os::deadline& until) noexcept override;

 private:
  enum progress : std::uint32_t { k_put = 1, k_armed = 2, k_awaited = 4 };

  std::uint32_t end_holding() noexcept;
  void watch() noexcept;

  const device& where_;
  event_handle handle_;
  const bool knows_time_;
  std::atomic<std::uint32_t> progress_{0};
};

}  // namespace isthmus::cuda
