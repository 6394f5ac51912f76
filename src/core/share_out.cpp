// SPDX-License-Identifier: Apache-2.0
#include "core/share_out.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "core/threads.hpp"

namespace isthmus {
namespace {

// Fewer threads do not saturate the memory bandwidth of a server: for 1 GiB, 16 threads copied 107
// GB/s, 8 of them 78 (Xeon of a machine with an H100).
constexpr std::size_t k_most_threads = 16;
// What a thread takes at a time: small, so that a delayed thread delays the end by little.
constexpr std::size_t k_piece = std::size_t{256} << 10;
constexpr std::size_t k_pieces_worth_a_thread = 16;

std::size_t threads_for(std::size_t nbytes) noexcept {
  const std::size_t processors = std::thread::hardware_concurrency();  // 0: not known
  const auto worth = nbytes / (k_pieces_worth_a_thread * k_piece);
  return std::max<std::size_t>(1, std::min({processors, k_most_threads, worth}));
}

// Hands out pieces in order. Each thread publishes in `at_` the number of its current piece, so
// that all pieces before the lowest published number are done. Numbers are taken and published with
// sequentially consistent operations: see `do_next` and `done_upto`.
class Pieces {
 public:
  Pieces(std::size_t nbytes, const SharedWork& work, void* context) noexcept
      : nbytes_{nbytes}, work_{work}, context_{context} {
    for (auto& each : at_) {
      each.store(k_none, std::memory_order_relaxed);
    }
  }

  // False if no piece was left.
  bool do_next(std::size_t thread) noexcept {
    auto& at = at_.at(thread);
    at.store(taken_.load());  // a lower bound of the piece taken next, for `done_upto`
    const auto number = taken_.fetch_add(1);
    const bool is_one = number < count();
    if (is_one) {
      const auto begin = number * k_piece;
      work_.piece(context_, begin, std::min(k_piece, nbytes_ - begin));
    }
    at.store(k_none);
    return is_one;
  }
  // In bytes. `taken_` is read first: a piece taken before that is published in `at_` until it is
  // done.
  [[nodiscard]] std::size_t done_upto() const noexcept {
    auto first = std::min(taken_.load(), count());
    for (const auto& each : at_) {
      first = std::min(first, each.load());
    }
    return std::min(first * k_piece, nbytes_);
  }
  // On the calling thread alone. `done_upto` may fall below a value reported earlier, when a thread
  // has published a number but not yet taken its piece; reported values never decrease.
  [[nodiscard]] bool go_on() noexcept {
    told_ = std::max(told_, done_upto());
    return work_.done == nullptr || work_.done(context_, told_);
  }
  void leave_the_rest() noexcept { taken_.store(count()); }

 private:
  static constexpr std::size_t k_none = SIZE_MAX;

  [[nodiscard]] std::size_t count() const noexcept { return (nbytes_ + k_piece - 1) / k_piece; }

  const std::size_t nbytes_;
  const SharedWork& work_;
  void* const context_;
  std::size_t told_ = 0;
  std::atomic<std::size_t> taken_{0};
  std::array<std::atomic<std::size_t>, k_most_threads> at_;
};

}  // namespace

void share_out(std::size_t nbytes, const SharedWork& work, void* context) noexcept {
  Pieces all{nbytes, work, context};
  std::array<std::thread, k_most_threads> others;
  try {
    for (std::size_t number = 1; number < threads_for(nbytes); ++number) {
      others.at(number) = start_thread([&all, number] {
        while (all.do_next(number)) {
        }
      });
    }
  } catch (...) {  // no thread or no memory for one: the existing threads take all pieces
  }
  bool wanted = true;
  while (wanted && all.do_next(0)) {
    wanted = all.go_on();
  }
  if (!wanted) {
    all.leave_the_rest();
  }
  for (auto& other : others) {
    if (other.joinable()) {
      other.join();
    }
  }
  if (wanted) {
    static_cast<void>(all.go_on());
  }
}

}  // namespace isthmus
