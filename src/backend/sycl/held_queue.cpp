// SPDX-License-Identifier: Apache-2.0
#include "backend/sycl/held_queue.hpp"

namespace isthmus::sycl {
namespace {

const Api& api_of(const void* api) noexcept { return *static_cast<const Api*>(api); }

void* submit_barrier(const void* api, void* queue) noexcept {
  return api_of(api).barrier(static_cast<QueueReference>(queue));
}

bool is_running(const void* api, void* barrier) noexcept {
  const auto status = api_of(api).event_status(static_cast<EventReference>(barrier));
  return status != dp::k_status_complete && status != dp::k_status_unknown;
}

constexpr NativeQueue::Calls k_calls{submit_barrier, is_running};

}  // namespace

NativeQueue HeldQueue::retain_native() noexcept {
  return {&k_calls, &calls_, calls_.copy_queue(get())};
}

}  // namespace isthmus::sycl
