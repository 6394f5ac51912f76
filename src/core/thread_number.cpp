// SPDX-License-Identifier: Apache-2.0
#include "core/thread_number.hpp"

#include <atomic>
#include <bit>

#include "core/owned_by_thread.hpp"

namespace isthmus {

thread_local constinit std::uint32_t detail::cached_thread_number ISTHMUS_TLS_MODEL = 0;

namespace {

// An ending thread clears its bit with release, and the next owner sets it with acquire, so that it
// sees what the previous owner did.
constinit std::atomic<std::uint64_t> used_numbers{1};  // one bit per number; 0 is no number

std::uint32_t claim_lowest() noexcept {
  auto current = used_numbers.load(std::memory_order_relaxed);
  while (~current != 0) {
    if (used_numbers.compare_exchange_weak(current, current | (current + 1),
                                           std::memory_order_acquire, std::memory_order_relaxed)) {
      return static_cast<std::uint32_t>(std::countr_one(current));
    }
  }
  return k_thread_numbers;
}

class HeldNumber {
 public:
  HeldNumber() noexcept : number_{claim_lowest()} {}
  HeldNumber(const HeldNumber&) = delete;
  HeldNumber& operator=(const HeldNumber&) = delete;
  ~HeldNumber() {
    detail::cached_thread_number = k_thread_numbers;
    if (number_ != k_thread_numbers) {
      used_numbers.fetch_and(~(std::uint64_t{1} << number_), std::memory_order_release);
    }
  }
  [[nodiscard]] std::uint32_t get() const noexcept { return number_; }

 private:
  const std::uint32_t number_;
};
thread_local constinit OwnedByThread<HeldNumber> thread_held_number;

}  // namespace

std::uint32_t claim_thread_number() noexcept {
  if (detail::cached_thread_number == 0) {
    const auto* holder = thread_held_number.get();
    if (holder == nullptr) {
      return k_thread_numbers;  // not cached: a later call may obtain memory
    }
    detail::cached_thread_number = holder->get();
  }
  return detail::cached_thread_number;
}

}  // namespace isthmus
