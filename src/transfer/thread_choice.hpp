// SPDX-License-Identifier: Apache-2.0
#pragma once
// Chooses the number of threads of large copies from the times of earlier ones, for one device and
// direction. Thread-safe.
//
// The best number cannot be predicted: it depends on the bus, the host's memory and caches, and
// other load. So the program's own copies are timed; no copy is executed for measurement alone.
// Copies of similar size are compared. The first few use the number that was best on one machine;
// the next few use larger or smaller numbers as long as these are better. Each number is judged by
// its minimum time, since other load only increases the time.

#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "core/spin_lock.hpp"
#include "core/thread_safety.hpp"

namespace isthmus {

class ThreadChoice {
 public:
  static constexpr std::size_t k_max_threads = 16;
  // Below this size the time of a copy depends more on the wake-up of the threads than on their
  // number.
  static constexpr std::size_t k_min_timed_bytes = std::size_t{4} << 20;
  static constexpr std::size_t k_samples = 3;

  // Returns the number of threads for a copy of `nbytes`, at most `max`. `max` is at least 1 and
  // may differ between calls.
  [[nodiscard]] std::size_t threads_for(std::size_t nbytes, std::size_t max) noexcept;
  // Whether `threads_for` has completed its measurements for that size.
  [[nodiscard]] bool is_decided(std::size_t nbytes, std::size_t max) noexcept;
  // Records the time of a copy that used `threads` threads from its beginning to its end.
  void record(std::size_t nbytes, std::size_t threads, std::chrono::nanoseconds time) noexcept;

 private:
  struct Sample {
    std::size_t count = 0;
    double min_time = 0;  // ns per byte
  };
  using Samples = std::array<Sample, k_max_threads + 1>;  // indexed by the number of threads
  struct Choice {
    std::size_t threads;
    bool is_decided;
  };

  [[nodiscard]] static Choice choose(const Samples& samples, std::size_t max) noexcept;
  // Returns the samples of copies whose size is within a factor of two: the time per byte depends
  // on the size.
  [[nodiscard]] Samples& samples_for(std::size_t nbytes) noexcept ISTHMUS_REQUIRES(lock_);
  [[nodiscard]] Choice choice_for(std::size_t nbytes, std::size_t max) noexcept;

  static constexpr std::size_t k_sizes =
      9;  // powers of two from 4 MiB; the last one covers 1 GiB and more

  SpinLock lock_;
  std::array<Samples, k_sizes> samples_ ISTHMUS_GUARDED_BY(lock_){};
};

}  // namespace isthmus
