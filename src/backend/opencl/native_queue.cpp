// SPDX-License-Identifier: Apache-2.0
#include "backend/opencl/native_queue.hpp"

namespace isthmus::opencl {
namespace {

const Api& api_of(const void* api) noexcept { return *static_cast<const Api*>(api); }

void* submit_barrier(const void* api, void* queue) noexcept {
  const auto& calls = api_of(api);
  auto* const handle = static_cast<QueueHandle>(queue);
  EventHandle barrier = nullptr;
  if (calls.enqueue_barrier(handle, 0, nullptr, &barrier) != cl::k_success) {
    return nullptr;
  }
  calls.flush(handle);
  return barrier;
}

bool is_running(const void* api, void* barrier) noexcept {
  Code status = cl::k_complete;
  const auto outcome = api_of(api).get_event_info(
      static_cast<EventHandle>(barrier), cl::k_event_status, sizeof status, &status, nullptr);
  return outcome == cl::k_success && status > cl::k_complete;
}

constexpr NativeQueue::Calls k_calls{submit_barrier, is_running};

}  // namespace

NativeQueue retain_native_queue(const Api& calls, QueueHandle queue) noexcept {
  return {&k_calls, &calls, calls.retain_queue(queue) == cl::k_success ? queue : nullptr};
}

}  // namespace isthmus::opencl
