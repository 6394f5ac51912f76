// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/event.hpp"

#include <cmath>

#include "backend/call_of_any_thread.hpp"
#include "backend/cuda/current.hpp"
#include "core/undo.hpp"
#include "os/process.hpp"

namespace isthmus::cuda {
namespace {

Result<CUevent> acquire_event(const Device& device, bool has_timing) {
  if (auto* cached = has_timing ? nullptr : device.events().acquire()) {
    return cached;
  }
  const ContextGuard guard{device.calls(), device.primary_or_null()};
  CUevent event = nullptr;
  const auto outcome =
      guard.outcome() != cu::k_success
          ? guard.outcome()
          : device.calls().create_event(
                &event, has_timing ? cu::k_event_default : cu::k_event_disable_timing);
  if (outcome != cu::k_success) {
    return call_failed("cuEventCreate", outcome);
  }
  return event;
}

// Returns an event to the cache, or destroys it if it has timing or the cache is full.
void release_event(const Device& device, CUevent event, bool has_timing) noexcept {
  if (os::is_forked_child() || (!has_timing && device.events().recycle(event)) ||
      os::drivers_unavailable()) {
    return;
  }
  if (const ContextGuard guard{device.calls(), device.primary_or_null()};
      guard.outcome() == cu::k_success) {
    device.calls().destroy_event(event);
  }
}

}  // namespace

Result<Ref<Operation>> make_operation(const Device& device, bool has_timing) {
  auto handle = acquire_event(device, has_timing);
  ISTHMUS_TRY(handle);
  Undo cleanup{[&] { release_event(device, *handle, has_timing); }};
  auto event = make_ref<Operation>(device, *handle, has_timing);
  cleanup.dismiss();
  return event;
}

Operation::~Operation() { release_event(device_, handle_, has_timing_); }

// The resolution of CUDA's times is half a microsecond.
Result<std::int64_t> Operation::elapsed_since(Event& earlier) {
  auto* const begin = dynamic_cast<Operation*>(&earlier);
  if (begin == nullptr || &begin->device_ != &device_) {
    return fail(
        ISTHMUS_ERROR_INVALID_ARGUMENT,
        "the earlier event does not belong to {}: mark the beginning and the end on queues of "
        "one device",
        device_.properties().filter);
  }
  if (!has_timing_ || !begin->has_timing_) {
    return fail(
        ISTHMUS_ERROR_UNSUPPORTED,
        "the event of an operation records no time on {}: mark the queue before and after it",
        device_.properties().filter);
  }
  if (!succeeded() || !begin->succeeded()) {
    return failed_events_have_no_time();
  }
  if (os::drivers_unavailable()) {
    return driver_unavailable_error();
  }
  const ContextGuard guard{device_.calls(), device_.primary_or_null()};
  float milliseconds = 0;
  const auto outcome = guard.outcome() == cu::k_success
                           ? device_.calls().elapsed(&milliseconds, begin->handle_, handle_)
                           : guard.outcome();
  if (outcome != cu::k_success) {
    return call_failed("cuEventElapsedTime", outcome);
  }
  return std::llround(double{milliseconds} * 1e6);
}

// Does not query an event that was not recorded yet: the driver would report it as completed.
void Operation::refresh() noexcept {
  if (!is_enqueued()) {
    return;
  }
  if (os::drivers_unavailable()) {
    complete(driver_unavailable_error());
    return;
  }
  const ContextGuard guard{device_.calls(), device_.primary_or_null()};
  const auto outcome =
      guard.outcome() == cu::k_success ? device_.calls().query(handle_) : guard.outcome();
  // During a capture an older driver does not report the state; the operation may still be running.
  if (outcome != cu::k_error_NOT_READY && !is_capture_error(outcome)) {
    complete(outcome == cu::k_success ? Error{} : call_failed("the operation", outcome));
  }
}

}  // namespace isthmus::cuda
