// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sets and restores the current context around driver calls. CUDA's calls use the calling thread's
// current context, but that setting belongs to the program.

#include <optional>

#include "backend/cuda/api.hpp"
#include "backend/cuda/errors.hpp"
#include "core/threads.hpp"
#include "os/process.hpp"

namespace isthmus::cuda {

// Makes a context current on this thread until the destructor restores the previous one. Costs 0.06
// us, less if the context was current already.
//
// The guard also prevents these calls from invalidating a stream capture of other code. While a
// capture in mode "global" is active, such as PyTorch's, a call on any thread that queries an
// event, allocates or frees would end the capture with an error (H100). The thread's capture mode
// is therefore relaxed until the destructor restores it.
//
// On library threads a guard also counts as a driver call, so that process exit waits for it. Once
// exit has begun, the guard's outcome is DEINITIALIZED.
class ContextGuard {
 public:
  ContextGuard(const Api& calls, CUcontext context) noexcept : calls_{calls} {
    if (on_library_thread() && !driver_call_.emplace()) {
      outcome_ = cu::k_error_DEINITIALIZED;
      return;
    }
    outcome_ = calls_.get_current(&previous_);
    if (outcome_ == cu::k_success && previous_ != context) {
      outcome_ = calls_.set_current(context);
      switched_ = outcome_ == cu::k_success;
    }
    if (calls_.exchange_capture_mode != nullptr) {
      calls_.exchange_capture_mode(&capture_mode_);
    }
  }
  ~ContextGuard() {
    if (calls_.exchange_capture_mode != nullptr && outcome_ != cu::k_error_DEINITIALIZED) {
      calls_.exchange_capture_mode(&capture_mode_);
    }
    if (switched_) {
      calls_.set_current(previous_);
    }
  }
  ContextGuard(const ContextGuard&) = delete;
  ContextGuard& operator=(const ContextGuard&) = delete;

  [[nodiscard]] CUresult outcome() const noexcept { return outcome_; }

 private:
  const Api& calls_;
  std::optional<os::DriverCall> driver_call_;
  CUcontext previous_ = nullptr;
  unsigned capture_mode_ = cu::k_capture_mode_relaxed;  // swapped with the thread's mode
  bool switched_ = false;
  CUresult outcome_ = cu::k_success;
};

}  // namespace isthmus::cuda
