// SPDX-License-Identifier: Apache-2.0
#include "transfer/thread_choice.hpp"

#include <algorithm>
#include <mutex>

namespace isthmus {
namespace {

constexpr std::array<std::size_t, 8> k_steps{1, 2, 3, 4, 6, 8, 12, 16};
// The best number for an H100 with 16 cores.
constexpr std::size_t k_first = 8;
// Threads that save less than 1/32 of the time are better left to the program.
constexpr double k_worth_more_threads = 1.0 - 1.0 / 32;

std::size_t above(std::size_t threads, std::size_t most) noexcept {
  const auto next = std::upper_bound(k_steps.begin(), k_steps.end(), threads);
  return next == k_steps.end() ? most : std::min(*next, most);
}

std::size_t below(std::size_t threads) noexcept {
  const auto next = std::lower_bound(k_steps.begin(), k_steps.end(), threads);
  return next == k_steps.begin() ? threads : *std::prev(next);
}

}  // namespace

// Goes up while that gains, then down while nothing is lost against the best.
thread_choice::choice thread_choice::choose(const samples& of, std::size_t most) noexcept {
  const auto is_known = [&of](std::size_t threads) { return of.at(threads).count >= k_samples; };
  const auto gains = [&of](std::size_t more, std::size_t fewer) {
    return of.at(more).least < of.at(fewer).least * k_worth_more_threads;
  };
  auto best = std::min(k_first, most);
  for (auto next = best;; next = above(best, most)) {
    if (!is_known(next)) {
      return {next, false};
    }
    if (next != best && !gains(next, best)) {
      break;
    }
    best = next;
    if (best == most) {
      break;
    }
  }
  auto chosen = best;
  for (auto next = below(best); next != chosen; next = below(chosen)) {
    if (!is_known(next)) {
      return {next, false};
    }
    if (gains(best, next)) {
      break;
    }
    chosen = next;
    best = of.at(next).least < of.at(best).least ? next : best;
  }
  return {chosen, true};
}

thread_choice::samples& thread_choice::like(std::size_t nbytes) noexcept {
  const auto times = std::max<std::size_t>(1, nbytes / k_least_timed);
  return taken_.at(std::min<std::size_t>(std::bit_width(times) - 1, k_sizes - 1));
}

thread_choice::choice thread_choice::chosen(std::size_t nbytes, std::size_t most) noexcept {
  most = std::min(most, k_most);
  if (most == 1 || nbytes < k_least_timed) {
    return {std::min(most, k_first), true};
  }
  const std::lock_guard hold{lock_};
  return choose(like(nbytes), most);
}

std::size_t thread_choice::threads_for(std::size_t nbytes, std::size_t most) noexcept {
  return chosen(nbytes, most).threads;
}

bool thread_choice::is_settled(std::size_t nbytes, std::size_t most) noexcept {
  return chosen(nbytes, most).is_settled;
}

void thread_choice::took(std::size_t nbytes, std::size_t threads,
                         std::chrono::nanoseconds time) noexcept {
  if (nbytes < k_least_timed || threads > k_most) {
    return;
  }
  const auto each = static_cast<double>(time.count()) / static_cast<double>(nbytes);
  const std::lock_guard hold{lock_};
  auto& known = like(nbytes).at(threads);
  known.least = known.count == 0 ? each : std::min(known.least, each);
  ++known.count;
}

}  // namespace isthmus
