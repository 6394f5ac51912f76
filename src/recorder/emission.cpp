// SPDX-License-Identifier: Apache-2.0
#include "recorder/emission.hpp"

#include <array>
#include <chrono>
#include <thread>

#include "core/expects.hpp"
#include "core/lock_guard.hpp"
#include "core/mutex.hpp"
#include "core/thread_number.hpp"
#include "core/thread_safety.hpp"
#include "core/tls.hpp"
#include "os/process.hpp"
#include "os/process_fence.hpp"

namespace isthmus {
namespace {

// Raised when an emission of the thread with that number begins, and again when it ends. The next
// thread with the number continues the count.
struct alignas(64) Mark {
  std::atomic<std::uint32_t> count{0};
};
constinit std::array<Mark, k_thread_numbers> marks{};

// Held during the emissions of threads without a number.
constinit Mutex unnumbered_lock;

// Whether emissions rely on the process fence. Reset if the kernel refuses the fence later.
constinit std::atomic<bool> uses_process_fence{false};

ISTHMUS_TLS_MODEL thread_local constinit bool is_emitting = false;

// If the kernel no longer allows the fence, waits until the stores of other threads have become
// visible by themselves: a store buffer is drained within microseconds.
void fence_all_threads() noexcept {
  if (uses_process_fence.load(std::memory_order_relaxed) && !os::process_fence()) {
    uses_process_fence.store(false, std::memory_order_relaxed);
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
}

// Sequentially consistent, like the stores of the caller and the accesses of an emission: without
// the process fence, at least one of the two threads sees what the other stored.
void wait_for_end(const std::atomic<std::uint32_t>& mark) noexcept {
  const auto begun = mark.load(std::memory_order_seq_cst);
  while (begun % 2 != 0 && mark.load(std::memory_order_acquire) == begun) {
    std::this_thread::yield();
  }
}

}  // namespace

Emission::Emission() noexcept : allowed_{!is_emitting && !os::is_forked_child()} {
  if (!allowed_) {
    return;
  }
  is_emitting = true;
  const auto number = claim_thread_number();
  if (number == k_thread_numbers) [[unlikely]] {
    unnumbered_lock.lock();
    return;
  }
  mark_ = &marks[number].count;
  if (uses_process_fence.load(std::memory_order_relaxed)) [[likely]] {
    mark_->store(mark_->load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  } else {
    mark_->fetch_add(1, std::memory_order_seq_cst);
  }
}

Emission::~Emission() {
  if (!allowed_) {
    return;
  }
  if (mark_ != nullptr) [[likely]] {
    mark_->store(mark_->load(std::memory_order_relaxed) + 1, std::memory_order_release);
  } else {
    unnumbered_lock.unlock();
  }
  is_emitting = false;
}

void prepare_emissions() noexcept {
  [[maybe_unused]] static const bool once = [] {
    uses_process_fence.store(os::register_process_fence(), std::memory_order_relaxed);
    return true;
  }();
}

void wait_for_emissions() noexcept {
  ISTHMUS_EXPECTS(!is_emitting && !os::is_forked_child());
  fence_all_threads();
  for (const auto& each : marks) {
    wait_for_end(each.count);
  }
  const LockGuard after_unnumbered{unnumbered_lock};
}

}  // namespace isthmus
