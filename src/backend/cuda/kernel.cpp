// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/kernel.hpp"

#include <chrono>

#include "backend/cuda/device.hpp"
#include "backend/cuda/errors.hpp"
#include "backend/cuda/pointer.hpp"
#include "core/sizes.hpp"

namespace isthmus::cuda {
namespace {

using namespace std::chrono_literals;

// Whether the error is permanent for this kernel and driver: the same call would fail again.
bool is_of_kernel(Code failure) noexcept {
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

// An attempt may take a millisecond, and many operations query the kernel.
constexpr auto k_between_attempts = 100ms;

}  // namespace

// The module stays loaded if its function is not found: the next attempt continues from there.
Code Kernel::load(const Api& calls, FunctionHandle& found) noexcept {
  if (module_ == nullptr) {
    if (const auto outcome = calls.load_module(&module_, text_); outcome != cu::k_success) {
      module_ = nullptr;
      return outcome;
    }
  }
  return calls.find_function(&found, module_, name_);
}

FunctionHandle Kernel::loaded(const Api& calls) noexcept {
  if (!asked_.load(std::memory_order_acquire)) {
    const std::lock_guard hold{loading_};
    if (!asked_.load(std::memory_order_relaxed)) {
      if (os::Clock::now() < next_attempt_) {
        return nullptr;
      }
      FunctionHandle found = nullptr;
      const auto outcome = load(calls, found);
      if (outcome != cu::k_success && !is_of_kernel(outcome)) {
        const bool may_pass_at_once =
            outcome == cu::k_error_OUT_OF_MEMORY || is_of_capture(outcome);
        next_attempt_ = os::Clock::now() + (may_pass_at_once ? 0ms : k_between_attempts);
        return nullptr;
      }
      function_.store(outcome == cu::k_success ? found : nullptr, std::memory_order_relaxed);
      asked_.store(true, std::memory_order_release);
    }
  }
  return function_.load(std::memory_order_relaxed);
}

bool Device::kernels_reach(const void* pointer, std::size_t nbytes) const noexcept {
  const auto told = ask_pointer(calls_, pointer);
  if (told.kind == ISTHMUS_KIND_UNKNOWN ||
      (told.kind == ISTHMUS_KIND_DEVICE && told.where != index_) ||
      (told.kind == ISTHMUS_KIND_HOST &&
       !lies_within(address(pointer) - address(told.base), nbytes, told.nbytes))) {
    return false;
  }
  Number what = cu::k_pointer_on_device;
  Place seen = 0;
  void* answer = &seen;
  return calls_.pointer_attributes(1, &what, &answer, place_of(pointer)) == cu::k_success &&
         seen == place_of(pointer);
}

}  // namespace isthmus::cuda
