// SPDX-License-Identifier: Apache-2.0
#include "transfer/thread_choice.hpp"

#include <algorithm>

#include "core/lock_guard.hpp"

namespace isthmus {
namespace {

constexpr std::array<std::size_t, 8> k_steps{1, 2, 3, 4, 6, 8, 12, 16};
// The fastest number for an H100 with 16 cores.
constexpr std::size_t k_initial_threads = 8;
// More threads are used only if they save at least 1/32 of the time; otherwise the processors are
// left to the program.
constexpr double k_max_time_ratio = 1.0 - 1.0 / 32;

std::size_t larger_step(std::size_t threads, std::size_t max) noexcept {
  const auto next = std::upper_bound(k_steps.begin(), k_steps.end(), threads);
  return next == k_steps.end() ? max : std::min(*next, max);
}

std::size_t smaller_step(std::size_t threads) noexcept {
  const auto next = std::lower_bound(k_steps.begin(), k_steps.end(), threads);
  return next == k_steps.begin() ? threads : *std::prev(next);
}

}  // namespace

// Tries larger numbers while they are faster, then smaller numbers while they are not noticeably
// slower than the best one.
ThreadChoice::Choice ThreadChoice::choose(const Samples& samples, std::size_t max) noexcept {
  const auto is_known = [&samples](std::size_t threads) {
    return samples.at(threads).count >= k_samples;
  };
  const auto is_faster = [&samples](std::size_t more, std::size_t fewer) {
    return samples.at(more).min_time < samples.at(fewer).min_time * k_max_time_ratio;
  };
  auto best = std::min(k_initial_threads, max);
  for (auto next = best;; next = larger_step(best, max)) {
    if (!is_known(next)) {
      return {next, false};
    }
    if (next != best && !is_faster(next, best)) {
      break;
    }
    best = next;
    if (best == max) {
      break;
    }
  }
  auto chosen = best;
  for (auto next = smaller_step(best); next != chosen; next = smaller_step(chosen)) {
    if (!is_known(next)) {
      return {next, false};
    }
    if (is_faster(best, next)) {
      break;
    }
    chosen = next;
    best = samples.at(next).min_time < samples.at(best).min_time ? next : best;
  }
  return {chosen, true};
}

ThreadChoice::Samples& ThreadChoice::samples_for(std::size_t nbytes) noexcept {
  const auto times = std::max<std::size_t>(1, nbytes / k_min_timed_bytes);
  const auto doublings = static_cast<std::size_t>(std::bit_width(times)) - 1;
  return samples_.at(std::min(doublings, k_sizes - 1));
}

ThreadChoice::Choice ThreadChoice::choice_for(std::size_t nbytes, std::size_t max) noexcept {
  max = std::min(max, k_max_threads);
  if (max == 1 || nbytes < k_min_timed_bytes) {
    return {std::min(max, k_initial_threads), true};
  }
  const LockGuard hold{lock_};
  return choose(samples_for(nbytes), max);
}

std::size_t ThreadChoice::threads_for(std::size_t nbytes, std::size_t max) noexcept {
  return choice_for(nbytes, max).threads;
}

bool ThreadChoice::is_decided(std::size_t nbytes, std::size_t max) noexcept {
  return choice_for(nbytes, max).is_decided;
}

void ThreadChoice::record(std::size_t nbytes, std::size_t threads,
                          std::chrono::nanoseconds time) noexcept {
  if (nbytes < k_min_timed_bytes || threads > k_max_threads) {
    return;
  }
  const auto time_per_byte = static_cast<double>(time.count()) / static_cast<double>(nbytes);
  const LockGuard hold{lock_};
  auto& sample = samples_for(nbytes).at(threads);
  sample.min_time = sample.count == 0 ? time_per_byte : std::min(sample.min_time, time_per_byte);
  ++sample.count;
}

}  // namespace isthmus
