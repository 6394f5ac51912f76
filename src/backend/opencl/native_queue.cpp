// SPDX-License-Identifier: Apache-2.0
#include "backend/opencl/native_queue.hpp"

namespace isthmus::opencl {
namespace {

const Api& api_of(const void* api) noexcept { return *static_cast<const Api*>(api); }

void* submit_barrier(const void* api, void* queue) noexcept {
  const auto& calls = api_of(api);
  auto* const handle = static_cast<cl_command_queue>(queue);
  cl_event barrier = nullptr;
  if (calls.enqueue_barrier(handle, 0, nullptr, &barrier) != CL_SUCCESS) {
    return nullptr;
  }
  calls.flush(handle);
  return barrier;
}

bool is_running(const void* api, void* barrier) noexcept {
  cl_int status = CL_COMPLETE;
  const auto outcome =
      api_of(api).get_event_info(static_cast<cl_event>(barrier), CL_EVENT_COMMAND_EXECUTION_STATUS,
                                 sizeof status, &status, nullptr);
  return outcome == CL_SUCCESS && status > CL_COMPLETE;
}

constexpr NativeQueue::Calls k_calls{submit_barrier, is_running};

}  // namespace

NativeQueue retain_native_queue(const Api& calls, cl_command_queue queue) noexcept {
  return {&k_calls, &calls, calls.retain_queue(queue) == CL_SUCCESS ? queue : nullptr};
}

}  // namespace isthmus::opencl
