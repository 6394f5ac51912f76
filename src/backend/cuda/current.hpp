// SPDX-License-Identifier: Apache-2.0
#pragma once
// CUDA's calls use the calling thread's current context, which belongs to the caller. So each call
// sets it and restores it.

#include <optional>

#include "backend/cuda/api.hpp"
#include "backend/cuda/errors.hpp"
#include "core/threads.hpp"
#include "os/process.hpp"

namespace isthmus::cuda {

// While it lives a context is current on this thread; the destructor restores the previous one.
// Costs 0.06 us, less if the context was current already.
//
// It also prevents calls from invalidating a capture of other code. While a capture in the mode
// "global" is active, as PyTorch's are, querying an event, allocating and freeing on any thread
// would end it with an error (H100). So the thread's capture mode is relaxed meanwhile.
//
// On the library's own threads it also counts as a driver call, so that the end of the process
// waits for it. Once that has begun it fails with DEINITIALIZED.
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
