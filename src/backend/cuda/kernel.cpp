// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/kernel.hpp"

#include <chrono>

#include "backend/cuda/errors.hpp"
#include "core/lock_guard.hpp"

namespace isthmus::cuda {
namespace {

using namespace std::chrono_literals;

// Whether the error is permanent for this kernel and driver: the same call would fail again.
bool is_kernel_error(CUresult failure) noexcept {
  switch (failure) {
    case cu::k_error_INVALID_IMAGE:
    case cu::k_error_NO_BINARY_FOR_GPU:
    case cu::k_error_INVALID_PTX:
    case cu::k_error_JIT_COMPILER_NOT_FOUND:
    case cu::k_error_UNSUPPORTED_PTX_VERSION:
    case cu::k_error_JIT_COMPILATION_DISABLED:
    case cu::k_error_NOT_FOUND:
    case cu::k_error_NOT_SUPPORTED: return true;
    default: return false;
  }
}

// Limits attempts to load a kernel, since one may take a millisecond and many operations need the
// kernel.
constexpr auto k_retry_interval = 100ms;

}  // namespace

// The module remains loaded if its function is not found, so that the next attempt need not load it
// again.
CUresult Kernel::load(const Api& calls, CUfunction& function) noexcept {
  if (module_ == nullptr) {
    if (const auto outcome = calls.load_module(&module_, text_); outcome != cu::k_success) {
      module_ = nullptr;
      return outcome;
    }
  }
  return calls.find_function(&function, module_, name_);
}

CUfunction Kernel::get_function(const Api& calls) noexcept {
  if (!resolved_.load(std::memory_order_acquire)) {
    const LockGuard hold{load_lock_};
    if (!resolved_.load(std::memory_order_relaxed)) {
      if (os::Clock::now() < next_attempt_) {
        return nullptr;
      }
      CUfunction function = nullptr;
      const auto outcome = load(calls, function);
      if (outcome != cu::k_success && !is_kernel_error(outcome)) {
        const bool retry_at_once =
            outcome == cu::k_error_OUT_OF_MEMORY || is_capture_error(outcome);
        next_attempt_ = os::Clock::now() + (retry_at_once ? 0ms : k_retry_interval);
        return nullptr;
      }
      function_.store(outcome == cu::k_success ? function : nullptr, std::memory_order_relaxed);
      resolved_.store(true, std::memory_order_release);
    }
  }
  return function_.load(std::memory_order_relaxed);
}

}  // namespace isthmus::cuda
