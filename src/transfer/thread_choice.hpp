// SPDX-License-Identifier: Apache-2.0
#pragma once
// Chooses the number of threads of large copies from the times of earlier ones, for one device and
// direction. Thread-safe.
//
// The best number of a machine cannot be predicted: it depends on the bus, the host's memory and
// caches, and other load. So the program's own copies are timed; no copy is made for measurement
// alone. Copies of similar size are compared. The first few use the number that was best on one
// machine, the next few a larger or smaller one, as long as that is better. The minimum time of
// each number counts, since other load only adds to it.

#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "core/spin_lock.hpp"

namespace isthmus {

class ThreadChoice {
 public:
  static constexpr std::size_t k_max_threads = 16;
  // Below this size the time of a copy depends more on the wake-up of the threads than on their
  // number.
  static constexpr std::size_t k_min_timed_bytes = std::size_t{4} << 20;
  static constexpr std::size_t k_samples = 3;

  // At most `max`, which is at least 1 and may change from call to call.
  [[nodiscard]] std::size_t threads_for(std::size_t nbytes, std::size_t max) noexcept;
  // Whether `threads_for` has nothing left to measure for that size.
  [[nodiscard]] bool is_decided(std::size_t nbytes, std::size_t max) noexcept;
  // Records the time of a copy that used that many threads throughout.
  void record(std::size_t nbytes, std::size_t threads, std::chrono::nanoseconds time) noexcept;

 private:
  struct Sample {
    std::size_t count = 0;
    double min_time = 0;  // ns per byte
  };
  using Samples = std::array<Sample, k_max_threads + 1>;  // by the number of threads
  struct Choice {
    std::size_t threads;
    bool is_decided;
  };

  [[nodiscard]] static Choice choose(const Samples& samples, std::size_t max) noexcept;
  // Samples of similar sizes, within a factor of two: the time per byte depends on the size.
  [[nodiscard]] Samples& samples_for(std::size_t nbytes) noexcept;
  [[nodiscard]] Choice choice_for(std::size_t nbytes, std::size_t max) noexcept;

  static constexpr std::size_t k_sizes = 9;  // up to 1 GiB and more

  SpinLock lock_;
  std::array<Samples, k_sizes> samples_{};
};

}  // namespace isthmus
