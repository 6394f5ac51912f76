// SPDX-License-Identifier: Apache-2.0
#include "os/process.hpp"

#include <pthread.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "core/long_path.hpp"

namespace isthmus::os {

namespace detail {
std::atomic<std::uint32_t> forks{0};
std::atomic<DriverState> driver_state{DriverState::active};
thread_local constinit int thread_driver_calls = 0;
}  // namespace detail

namespace {

std::atomic<int> calls_in_progress{0};
std::atomic<LastDriverCalls*> last_calls{nullptr};

// A driver that is torn down during a call crashes (Intel's OpenCL runtime: a pure virtual function
// call). Waits for the calls of other threads only: code of the program may end the process in a
// call of this thread, which then never returns.
void end_driver_calls() noexcept {
  auto expected = detail::DriverState::active;
  if (!detail::driver_state.compare_exchange_strong(expected, detail::DriverState::closing) ||
      is_forked_child()) {
    return;  // an earlier call has served all drivers, or a forked child has no counted threads
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{5};
  const int own_calls = detail::thread_driver_calls;
  while (calls_in_progress.load(std::memory_order_seq_cst) != own_calls &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::microseconds{100});
  }
  for (auto* calls = last_calls.load(std::memory_order_acquire); calls != nullptr;
       calls = calls->next) {
    calls->run();
  }
  detail::driver_state.store(detail::DriverState::closed);
}

}  // namespace

DriverCall::DriverCall() noexcept {
  calls_in_progress.fetch_add(1, std::memory_order_seq_cst);
  const auto state = detail::driver_state.load(std::memory_order_seq_cst);
  allowed_ = !is_forked_child() &&
             (state == detail::DriverState::active ||
              (state == detail::DriverState::closing && detail::thread_driver_calls != 0));
  detail::thread_driver_calls += allowed_ ? 1 : 0;
}

DriverCall::~DriverCall() {
  detail::thread_driver_calls -= allowed_ ? 1 : 0;
  calls_in_progress.fetch_sub(1, std::memory_order_seq_cst);
}

void add_last_driver_calls(LastDriverCalls& calls) noexcept {
  calls.next = last_calls.load(std::memory_order_relaxed);
  while (!last_calls.compare_exchange_weak(calls.next, &calls, std::memory_order_release,
                                           std::memory_order_relaxed)) {
  }
}

void watch_forks() noexcept {
  [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, [] {
    detail::forks.fetch_add(1, std::memory_order_relaxed);
    set_long_path(LongPathReason::forked_child, true);
  });
}

void watch_process() noexcept {
  watch_forks();
  // Exit handlers run in reverse order of registration: this one runs before those that the driver
  // registered while it was opened.
  std::atexit(end_driver_calls);
}

}  // namespace isthmus::os
