#pragma once
// How many threads a large copy is worth, by what the copies before it took: one for each device
// and direction.
//
// A machine's best number is not known beforehand: the bus, the host's memory, its caches and who
// else is at work decide. So the program's own copies are timed, and nothing is copied for the sake
// of it. Copies of like size are compared: the first few have as many threads as was best on one
// machine, the next few another number, up or down, as long as it is better. The least time of each
// number counts, as whatever else the machine does only adds to it.

#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "core/spin_lock.hpp"

namespace isthmus {

class thread_choice {
 public:
  static constexpr std::size_t k_most = 16;
  // Below, what a copy takes tells more of the threads' waking than of their number.
  static constexpr std::size_t k_least_timed = std::size_t{4} << 20;
  static constexpr std::size_t k_samples = 3;

  // At most `most`, which is 1 or more and may change from call to call.
  [[nodiscard]] std::size_t threads_for(std::size_t nbytes, std::size_t most) noexcept;
  // Whether `threads_for` has nothing left to find out there.
  [[nodiscard]] bool is_settled(std::size_t nbytes, std::size_t most) noexcept;
  // A copy with that many threads, all to itself, took as long.
  void took(std::size_t nbytes, std::size_t threads, std::chrono::nanoseconds time) noexcept;

 private:
  struct sample {
    std::size_t count = 0;
    double least = 0;  // ns a byte
  };
  using samples = std::array<sample, k_most + 1>;  // by the number of threads
  struct choice {
    std::size_t threads;
    bool is_settled;
  };

  [[nodiscard]] static choice choose(const samples& of, std::size_t most) noexcept;
  // Of sizes up to twice the least: what a byte takes depends on how many there are.
  [[nodiscard]] samples& like(std::size_t nbytes) noexcept;
  [[nodiscard]] choice chosen(std::size_t nbytes, std::size_t most) noexcept;

  static constexpr std::size_t k_sizes = 9;  // up to 1 GiB and more

  spin_lock lock_;
  std::array<samples, k_sizes> taken_{};
};

}  // namespace isthmus
