#include "os/process.hpp"

#include <pthread.h>

#include <chrono>
#include <cstdlib>
#include <thread>

namespace isthmus::os {

namespace detail {
std::atomic<std::uint32_t> forks{0};
std::atomic<bool> ending{false};
}  // namespace detail

namespace {

std::atomic<int> calls_under_way{0};

// A driver that is taken down under a call crashes (Intel's OpenCL runtime: a pure virtual
// function).
void end_driver_calls() noexcept {
  if (detail::ending.exchange(true, std::memory_order_seq_cst) || is_forked_child()) {
    return;  // once for all drivers; a child has none of the threads that are counted
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{5};
  while (calls_under_way.load(std::memory_order_seq_cst) != 0 &&
         std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::microseconds{100});
  }
}

}  // namespace

driver_call::driver_call() noexcept {
  calls_under_way.fetch_add(1, std::memory_order_seq_cst);
  allowed_ = !is_forked_child() && !detail::ending.load(std::memory_order_seq_cst);
}

driver_call::~driver_call() { calls_under_way.fetch_sub(1, std::memory_order_seq_cst); }

void watch_forks() noexcept {
  [[maybe_unused]] static const int registered = pthread_atfork(
      nullptr, nullptr, [] { detail::forks.fetch_add(1, std::memory_order_relaxed); });
}

void watch_process() noexcept {
  watch_forks();
  // Last registered, first run: before what the driver registered while it was opened.
  std::atexit(end_driver_calls);
}

}  // namespace isthmus::os
