// SPDX-License-Identifier: Apache-2.0
#pragma once
// The event of one operation, recorded after it. Thread-safe.

#include "backend/cuda/device.hpp"
#include "backend/polled_event.hpp"

namespace isthmus::cuda {

// Completion is polled, since a notification by a CUDA host function has drawbacks: it would delay
// the stream in which it runs, and would never be called once the context is lost.
class Operation final : public PolledEvent {
 public:
  // Takes ownership of `handle`. `has_timing`: the handle was created with timing.
  Operation(const Device& device, CUevent handle, bool has_timing) noexcept
      : device_{device}, handle_{handle}, has_timing_{has_timing} {}
  ~Operation() override;

  [[nodiscard]] CUevent handle() const noexcept { return handle_; }
  [[nodiscard]] void* native() noexcept override { return handle_; }
  [[nodiscard]] Result<std::int64_t> elapsed_since(Event& earlier) override;

 protected:
  void refresh() noexcept override;

 private:
  const Device& device_;
  CUevent handle_;
  const bool has_timing_;
};

// An event for the next operation. `has_timing`: it records the time when it completes.
[[nodiscard]] Result<Ref<Operation>> make_operation(const Device& device, bool has_timing);

}  // namespace isthmus::cuda
