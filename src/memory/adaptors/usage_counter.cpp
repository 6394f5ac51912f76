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

void UsageCounter::Sum::take_in(Flow& flow) noexcept {
  const auto live = flow.live();
  spare = plus(spare, minus(flow.bound, live));
  flow.bound = live;
}

void UsageCounter::Sum::raise_peak() noexcept {
  peak += static_cast<std::uint64_t>(minus(0, std::min<Difference>(spare, 0)));
  spare = std::max<Difference>(spare, 0);
}

void UsageCounter::Sum::open(Flow& flow, Difference share) noexcept {
  spare -= share;
  flow.bound = plus(flow.bound, share);
  flow.most.store(flow.bound, k_relaxed);
}

auto UsageCounter::Sum::live() const noexcept -> Difference {
  return minus(static_cast<Difference>(peak), spare);
}

void UsageCounter::Sum::reset(std::uint64_t all_in) noexcept {
  const auto now = live();
  peak = static_cast<std::uint64_t>(std::max<Difference>(now, 0));
  spare = minus(static_cast<Difference>(peak), now);
  forgotten = all_in;
}

UsageCounter::~UsageCounter() { delete[] more_.load(k_relaxed); }

// A forked child has none of the threads that may hold the lock.
template <class Body>
auto UsageCounter::locked(Body&& body) noexcept {
  std::unique_lock hold{lock_, std::defer_lock};
  if (!os::is_forked_child()) {
    hold.lock();
  }
  return body();
}

void UsageCounter::finish_add(std::size_t nbytes, Rest left) noexcept {
  locked([&] {
    if (own_slot() == nullptr) {
      claim();
    } else if (lacks_slots_) {
      make_more();
    }
    auto& own = own_or_others();
    if (left == Rest::all) {
      static_cast<void>(own.enter(nbytes));
    }
    settle(own);
  });
}

void UsageCounter::finish_remove(std::size_t nbytes, Rest left) noexcept {
  locked([&] {
    if (own_slot() == nullptr) {
      lacks_slots_ = claim_thread_number() != k_thread_numbers || lacks_slots_;
    }
    auto& own = own_or_others();
    if (left == Rest::all) {
      static_cast<void>(own.leave(nbytes));
    }
    take_in(own);
    open(own);
  });
}

void UsageCounter::restore(std::size_t nbytes) noexcept {
  locked([&] {
    auto& back_in = own_or_others();
    Flow::raise(back_in.bytes.out, 0 - std::uint64_t{nbytes});
    Flow::raise(back_in.count.out, ~std::uint64_t{0});
    settle(back_in);
  });
}

auto UsageCounter::own_or_others() noexcept -> Slot& {
  auto* own = own_slot();
  return own != nullptr ? *own : others_;
}

void UsageCounter::claim() noexcept {
  const auto mine = claim_thread_number();
  if (mine != k_thread_numbers && firsts_.load(k_relaxed) == k_nobody) {
    firsts_.store(mine, k_relaxed);
  } else if (mine != k_thread_numbers) {
    make_more();
  }
}

void UsageCounter::make_more() noexcept {
  if (more_.load(k_relaxed) == nullptr) {
    more_.store(new (std::nothrow) SlotOfMore[k_more], std::memory_order_release);
  }
  lacks_slots_ = false;
}

auto UsageCounter::slot_of(std::uint32_t thread) noexcept -> Slot& {
  return thread == firsts_.load(k_relaxed) ? first_ : more_.load(k_relaxed)[thread - 1];
}

void UsageCounter::settle(Slot& own) noexcept {
  take_in(own);
  if (bytes_.spare < 0 || count_.spare < 0) {
    close_all();
    bytes_.raise_peak();
    count_.raise_peak();
  }
  open(own);
}

void UsageCounter::take_in(Slot& own) noexcept {
  own.close();
  open_ &= &own == &others_ ? open_ : ~own_bit();
  bytes_.take_in(own.bytes);
  count_.take_in(own.count);
}

// With a share of what may still be allocated before the peak rises, about equal for all threads.
void UsageCounter::open(Slot& own) noexcept {
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

void UsageCounter::close_all() noexcept {
  if (open_ == 0) {
    return;
  }
  const auto each_open = [&](auto&& visit) {
    for (auto left = open_; left != 0; left &= left - 1) {
      visit(slot_of(static_cast<std::uint32_t>(std::countr_zero(left))));
    }
  };
  each_open([](Slot& each) { each.close(); });
  const bool others_too = open_ != own_bit();
  if (others_too) {
    fence_all_threads();
  }
  each_open([&](Slot& each) {
    bytes_.take_in(each.bytes);
    count_.take_in(each.count);
  });
  open_ = 0;
  if (others_too) {
    const auto allocations = all_in(&Slot::count);
    keep_closed_ = allocations - closed_at_ < k_apart ? k_apart : 0;
    closed_at_ = allocations;
  }
}

std::uint64_t UsageCounter::all_in(Flow Slot::*value) noexcept {
  auto all = (others_.*value).in.load(k_acquire);
  for (auto left = claimed_; left != 0; left &= left - 1) {
    all += (slot_of(static_cast<std::uint32_t>(std::countr_zero(left))).*value).in.load(k_acquire);
  }
  return all;
}

auto UsageCounter::read() noexcept -> Counts { return read_from(0); }

auto UsageCounter::read_signed() noexcept -> Counts {
  return read_from(std::numeric_limits<Difference>::min());
}

auto UsageCounter::read_from(Difference min) noexcept -> Counts {
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
        {all_in(&Slot::bytes) - bytes_.forgotten, all_in(&Slot::count) - count_.forgotten}};
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
