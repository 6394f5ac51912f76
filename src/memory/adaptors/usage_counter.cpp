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
constexpr std::uint32_t k_min_closing_interval = 256;

[[nodiscard]] bool may_open() noexcept {
  static const bool armed = os::register_process_fence();
  return armed;
}

// Modulo 2^64: a refused free may be of any number of bytes until it is restored.
constexpr std::int64_t plus(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
constexpr std::int64_t minus(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

// The calling thread's bit; 0 if its number has no slot.
std::uint64_t own_bit() noexcept {
  const auto thread = thread_number();
  return thread < k_thread_numbers ? std::uint64_t{1} << thread : 0;
}

// If the kernel refuses the fence it sleeps: by then a store in progress on another processor has
// arrived.
void fence_all_threads() noexcept {
  if (!os::process_fence()) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
}

}  // namespace

void UsageCounter::Sum::collect(Flow& flow) noexcept {
  const auto live = flow.live();
  slack = plus(slack, minus(flow.bound, live));
  flow.bound = live;
}

void UsageCounter::Sum::raise_peak() noexcept {
  peak += static_cast<std::uint64_t>(minus(0, std::min<Difference>(slack, 0)));
  slack = std::max<Difference>(slack, 0);
}

void UsageCounter::Sum::open(Flow& flow, Difference share) noexcept {
  slack -= share;
  flow.bound = plus(flow.bound, share);
  flow.limit.store(flow.bound, k_relaxed);
}

auto UsageCounter::Sum::live() const noexcept -> Difference {
  return minus(static_cast<Difference>(peak), slack);
}

void UsageCounter::Sum::reset(std::uint64_t all_in) noexcept {
  const auto current = live();
  peak = static_cast<std::uint64_t>(std::max<Difference>(current, 0));
  slack = minus(static_cast<Difference>(peak), current);
  base_total = all_in;
}

UsageCounter::~UsageCounter() { delete[] extra_slots_.load(k_relaxed); }

// A forked child has none of the threads that may hold the lock.
template <class Body>
auto UsageCounter::locked(Body&& body) noexcept {
  std::unique_lock hold{lock_, std::defer_lock};
  if (!os::is_forked_child()) {
    hold.lock();
  }
  return body();
}

void UsageCounter::finish_add(std::size_t nbytes, Rest rest) noexcept {
  locked([&] {
    if (own_slot() == nullptr) {
      claim();
    } else if (needs_slots_) {
      allocate_slots();
    }
    auto& own = own_or_shared();
    if (rest == Rest::all) {
      static_cast<void>(own.enter(nbytes));
    }
    rebalance(own);
  });
}

void UsageCounter::finish_remove(std::size_t nbytes, Rest rest) noexcept {
  locked([&] {
    if (own_slot() == nullptr) {
      needs_slots_ = claim_thread_number() != k_thread_numbers || needs_slots_;
    }
    auto& own = own_or_shared();
    if (rest == Rest::all) {
      static_cast<void>(own.leave(nbytes));
    }
    collect(own);
    open(own);
  });
}

void UsageCounter::restore(std::size_t nbytes) noexcept {
  locked([&] {
    auto& slot = own_or_shared();
    Flow::raise(slot.bytes.out, 0 - std::uint64_t{nbytes});
    Flow::raise(slot.count.out, ~std::uint64_t{0});
    rebalance(slot);
  });
}

auto UsageCounter::own_or_shared() noexcept -> Slot& {
  auto* own = own_slot();
  return own != nullptr ? *own : shared_;
}

void UsageCounter::claim() noexcept {
  const auto thread = claim_thread_number();
  if (thread != k_thread_numbers && first_thread_.load(k_relaxed) == k_no_thread) {
    first_thread_.store(thread, k_relaxed);
  } else if (thread != k_thread_numbers) {
    allocate_slots();
  }
}

void UsageCounter::allocate_slots() noexcept {
  if (extra_slots_.load(k_relaxed) == nullptr) {
    extra_slots_.store(new (std::nothrow) PaddedSlot[k_extra_slots], std::memory_order_release);
  }
  needs_slots_ = false;
}

auto UsageCounter::slot_of(std::uint32_t thread) noexcept -> Slot& {
  return thread == first_thread_.load(k_relaxed) ? first_
                                                 : extra_slots_.load(k_relaxed)[thread - 1];
}

void UsageCounter::rebalance(Slot& own) noexcept {
  collect(own);
  if (bytes_.slack < 0 || count_.slack < 0) {
    close_all();
    bytes_.raise_peak();
    count_.raise_peak();
  }
  open(own);
}

void UsageCounter::collect(Slot& own) noexcept {
  own.close();
  open_ &= &own == &shared_ ? open_ : ~own_bit();
  bytes_.collect(own.bytes);
  count_.collect(own.count);
}

// With a share of what may still be allocated before the peak rises, about equal for all threads.
void UsageCounter::open(Slot& own) noexcept {
  if (&own == &shared_) {
    return;
  }
  claimed_ |= own_bit();
  if (closed_calls_ != 0) {
    --closed_calls_;
    return;
  }
  if (!may_open()) {
    return;
  }
  const auto halvings = std::bit_width(static_cast<unsigned>(std::popcount(claimed_)) - 1);
  bytes_.open(own.bytes, bytes_.slack >> halvings);
  count_.open(own.count, count_.slack >> halvings);
  open_ |= own_bit();
}

void UsageCounter::close_all() noexcept {
  if (open_ == 0) {
    return;
  }
  const auto for_each_open = [&](auto&& visit) {
    for (auto bits = open_; bits != 0; bits &= bits - 1) {
      visit(slot_of(static_cast<std::uint32_t>(std::countr_zero(bits))));
    }
  };
  for_each_open([](Slot& each) { each.close(); });
  const bool has_other_open = open_ != own_bit();
  if (has_other_open) {
    fence_all_threads();
  }
  for_each_open([&](Slot& each) {
    bytes_.collect(each.bytes);
    count_.collect(each.count);
  });
  open_ = 0;
  if (has_other_open) {
    const auto allocations = all_in(&Slot::count);
    closed_calls_ = allocations - closed_at_ < k_min_closing_interval ? k_min_closing_interval : 0;
    closed_at_ = allocations;
  }
}

std::uint64_t UsageCounter::all_in(Flow Slot::*value) noexcept {
  auto all = (shared_.*value).in.load(k_acquire);
  for (auto bits = claimed_; bits != 0; bits &= bits - 1) {
    all += (slot_of(static_cast<std::uint32_t>(std::countr_zero(bits))).*value).in.load(k_acquire);
  }
  return all;
}

auto UsageCounter::read() noexcept -> Counts { return read_clamped(0); }

auto UsageCounter::read_signed() noexcept -> Counts {
  return read_clamped(std::numeric_limits<Difference>::min());
}

auto UsageCounter::read_clamped(Difference min) noexcept -> Counts {
  return locked([&] {
    close_all();
    bytes_.raise_peak();
    count_.raise_peak();
    const auto live = [min](const Sum& sum) {
      return static_cast<std::uint64_t>(std::max(sum.live(), min));
    };
    return Counts{
        {live(bytes_), live(count_)},
        {bytes_.peak, count_.peak},
        {all_in(&Slot::bytes) - bytes_.base_total, all_in(&Slot::count) - count_.base_total}};
  });
}

void UsageCounter::reset() noexcept {
  locked([&] {
    close_all();
    bytes_.reset(all_in(&Slot::bytes));
    count_.reset(all_in(&Slot::count));
  });
}

}  // namespace isthmus
