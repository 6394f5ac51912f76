// SPDX-License-Identifier: Apache-2.0
#include "memory/adaptors/usage_counter.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <new>
#include <thread>

#include "os/process.hpp"
#include "os/process_fence.hpp"

namespace isthmus {
namespace {

// If two closings that take the fence, some microseconds with many threads, are fewer allocations
// than this apart, slots stay closed for this many calls, which count under the lock.
constexpr std::uint32_t k_apart = 256;

[[nodiscard]] bool may_open() noexcept {
  static const bool armed = os::arm_process_fence();
  return armed;
}

// Modulo 2^64: a refused free may be of any number of bytes until it is counted in again.
constexpr std::int64_t plus(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
constexpr std::int64_t minus(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

// The calling thread's bit; 0 if its number has no slot.
std::uint64_t own_bit() noexcept {
  const auto mine = thread_number();
  return mine < k_thread_numbers ? std::uint64_t{1} << mine : 0;
}

// If the kernel refuses the fence it sleeps: by then a store in progress on another processor has
// arrived.
void fence_all_threads() noexcept {
  if (!os::process_fence()) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
}

}  // namespace

void usage_counter::sum::take_in(flow& of) noexcept {
  const auto live = of.live();
  spare = plus(spare, minus(of.bound, live));
  of.bound = live;
}

void usage_counter::sum::raise_peak() noexcept {
  peak += static_cast<std::uint64_t>(minus(0, std::min<difference>(spare, 0)));
  spare = std::max<difference>(spare, 0);
}

void usage_counter::sum::open(flow& of, difference share) noexcept {
  spare -= share;
  of.bound = plus(of.bound, share);
  of.most.store(of.bound, k_relaxed);
}

auto usage_counter::sum::live() const noexcept -> difference {
  return minus(static_cast<difference>(peak), spare);
}

void usage_counter::sum::reset(std::uint64_t all_in) noexcept {
  const auto now = live();
  peak = static_cast<std::uint64_t>(std::max<difference>(now, 0));
  spare = minus(static_cast<difference>(peak), now);
  forgotten = all_in;
}

usage_counter::~usage_counter() { delete[] more_.load(k_relaxed); }

// A forked child has none of the threads that may hold the lock.
template <class Body>
auto usage_counter::locked(Body&& body) noexcept {
  std::unique_lock hold{lock_, std::defer_lock};
  if (!os::is_forked_child()) {
    hold.lock();
  }
  return body();
}

void usage_counter::finish_add(std::size_t nbytes, rest left) noexcept {
  locked([&] {
    if (own_slot() == nullptr) {
      claim();
    } else if (lacks_slots_) {
      make_more();
    }
    auto& own = own_or_others();
    if (left == rest::all) {
      static_cast<void>(own.enter(nbytes));
    }
    settle(own);
  });
}

void usage_counter::finish_remove(std::size_t nbytes, rest left) noexcept {
  locked([&] {
    if (own_slot() == nullptr) {
      lacks_slots_ = claim_thread_number() != k_thread_numbers || lacks_slots_;
    }
    auto& own = own_or_others();
    if (left == rest::all) {
      static_cast<void>(own.leave(nbytes));
    }
    take_in(own);
    open(own);
  });
}

void usage_counter::restore(std::size_t nbytes) noexcept {
  locked([&] {
    auto& back_in = own_or_others();
    flow::raise(back_in.bytes.out, 0 - std::uint64_t{nbytes});
    flow::raise(back_in.count.out, ~std::uint64_t{0});
    settle(back_in);
  });
}

auto usage_counter::own_or_others() noexcept -> slot& {
  auto* own = own_slot();
  return own != nullptr ? *own : others_;
}

void usage_counter::claim() noexcept {
  const auto mine = claim_thread_number();
  if (mine != k_thread_numbers && firsts_.load(k_relaxed) == k_nobody) {
    firsts_.store(mine, k_relaxed);
  } else if (mine != k_thread_numbers) {
    make_more();
  }
}

void usage_counter::make_more() noexcept {
  if (more_.load(k_relaxed) == nullptr) {
    more_.store(new (std::nothrow) slot_of_more[k_more], std::memory_order_release);
  }
  lacks_slots_ = false;
}

auto usage_counter::slot_of(std::uint32_t thread) noexcept -> slot& {
  return thread == firsts_.load(k_relaxed) ? first_ : more_.load(k_relaxed)[thread - 1];
}

void usage_counter::settle(slot& own) noexcept {
  take_in(own);
  if (bytes_.spare < 0 || count_.spare < 0) {
    close_all();
    bytes_.raise_peak();
    count_.raise_peak();
  }
  open(own);
}

void usage_counter::take_in(slot& own) noexcept {
  own.close();
  open_ &= &own == &others_ ? open_ : ~own_bit();
  bytes_.take_in(own.bytes);
  count_.take_in(own.count);
}

// With a share of what may still be allocated before the peak rises, about equal for all threads.
void usage_counter::open(slot& own) noexcept {
  if (&own == &others_) {
    return;
  }
  claimed_ |= own_bit();
  if (keep_closed_ != 0) {
    --keep_closed_;
    return;
  }
  if (!may_open()) {
    return;
  }
  const auto halvings = std::bit_width(static_cast<unsigned>(std::popcount(claimed_)) - 1);
  bytes_.open(own.bytes, bytes_.spare >> halvings);
  count_.open(own.count, count_.spare >> halvings);
  open_ |= own_bit();
}

void usage_counter::close_all() noexcept {
  if (open_ == 0) {
    return;
  }
  const auto each_open = [&](auto&& visit) {
    for (auto left = open_; left != 0; left &= left - 1) {
      visit(slot_of(static_cast<std::uint32_t>(std::countr_zero(left))));
    }
  };
  each_open([](slot& each) { each.close(); });
  const bool others_too = open_ != own_bit();
  if (others_too) {
    fence_all_threads();
  }
  each_open([&](slot& each) {
    bytes_.take_in(each.bytes);
    count_.take_in(each.count);
  });
  open_ = 0;
  if (others_too) {
    const auto allocations = all_in(&slot::count);
    keep_closed_ = allocations - closed_at_ < k_apart ? k_apart : 0;
    closed_at_ = allocations;
  }
}

std::uint64_t usage_counter::all_in(flow slot::*of) noexcept {
  auto all = (others_.*of).in.load(k_acquire);
  for (auto left = claimed_; left != 0; left &= left - 1) {
    all += (slot_of(static_cast<std::uint32_t>(std::countr_zero(left))).*of).in.load(k_acquire);
  }
  return all;
}

auto usage_counter::read() noexcept -> counts { return read_from(0); }

auto usage_counter::read_signed() noexcept -> counts {
  return read_from(std::numeric_limits<difference>::min());
}

auto usage_counter::read_from(difference least) noexcept -> counts {
  return locked([&] {
    close_all();
    bytes_.raise_peak();
    count_.raise_peak();
    const auto live = [least](const sum& of) {
      return static_cast<std::uint64_t>(std::max(of.live(), least));
    };
    return counts{
        {live(bytes_), live(count_)},
        {bytes_.peak, count_.peak},
        {all_in(&slot::bytes) - bytes_.forgotten, all_in(&slot::count) - count_.forgotten}};
  });
}

void usage_counter::reset() noexcept {
  locked([&] {
    close_all();
    bytes_.reset(all_in(&slot::bytes));
    count_.reset(all_in(&slot::count));
  });
}

}  // namespace isthmus
