// SPDX-License-Identifier: Apache-2.0
#include "memory/resources/usage_counter.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <new>
#include <thread>

#include "os/lock_unless_forked.hpp"
#include "os/process_fence.hpp"

namespace isthmus {
namespace {

// A closing that needs the process fence takes some microseconds with many threads. If fewer
// allocations than this lie between two such closings, entries stay closed for this many calls,
// which count under the lock.
constexpr std::uint32_t k_min_closing_interval = 256;

[[nodiscard]] bool may_open() noexcept {
  static const bool armed = os::register_process_fence();
  return armed;
}

// Addition and subtraction modulo 2^64: until a refused free is restored, any number of bytes may
// be counted for it.
constexpr std::int64_t plus(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
constexpr std::int64_t minus(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

// The calling thread's bit; 0 if its number has no entry.
std::uint64_t own_bit() noexcept {
  const auto thread = thread_number();
  return thread < k_thread_numbers ? std::uint64_t{1} << thread : 0;
}

// If the kernel refuses the fence, sleeps instead. After that, a store that was in progress on
// another processor is visible.
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

UsageCounter::~UsageCounter() { delete[] extra_entries_.load(k_relaxed); }

void UsageCounter::finish_add(std::size_t nbytes, Rest rest) noexcept {
  const os::LockUnlessForked hold{lock_};
  if (own_entry() == nullptr) {
    claim();
  } else if (needs_entries_) {
    allocate_entries();
  }
  auto& own = own_or_shared();
  if (rest == Rest::all) {
    static_cast<void>(own.enter(nbytes));
  }
  rebalance(own);
}

void UsageCounter::finish_remove(std::size_t nbytes, Rest rest) noexcept {
  const os::LockUnlessForked hold{lock_};
  if (own_entry() == nullptr) {
    needs_entries_ = claim_thread_number() != k_thread_numbers || needs_entries_;
  }
  auto& own = own_or_shared();
  if (rest == Rest::all) {
    static_cast<void>(own.leave(nbytes));
  }
  collect(own);
  open(own);
}

void UsageCounter::restore(std::size_t nbytes) noexcept {
  const os::LockUnlessForked hold{lock_};
  auto& entry = own_or_shared();
  Flow::raise(entry.bytes.out, 0 - std::uint64_t{nbytes});
  Flow::raise(entry.count.out, ~std::uint64_t{0});
  rebalance(entry);
}

auto UsageCounter::own_or_shared() noexcept -> Entry& {
  auto* own = own_entry();
  return own != nullptr ? *own : shared_;
}

void UsageCounter::claim() noexcept {
  const auto thread = claim_thread_number();
  if (thread != k_thread_numbers && first_thread_.load(k_relaxed) == k_no_thread) {
    first_thread_.store(thread, k_relaxed);
  } else if (thread != k_thread_numbers) {
    allocate_entries();
  }
}

void UsageCounter::allocate_entries() noexcept {
  if (extra_entries_.load(k_relaxed) == nullptr) {
    extra_entries_.store(new (std::nothrow) PaddedEntry[k_extra_entries],
                         std::memory_order_release);
  }
  needs_entries_ = false;
}

auto UsageCounter::entry_of(std::uint32_t thread) noexcept -> Entry& {
  return thread == first_thread_.load(k_relaxed) ? first_
                                                 : extra_entries_.load(k_relaxed)[thread - 1];
}

void UsageCounter::rebalance(Entry& own) noexcept {
  collect(own);
  if (bytes_.slack < 0 || count_.slack < 0) {
    close_all();
    bytes_.raise_peak();
    count_.raise_peak();
  }
  open(own);
}

void UsageCounter::collect(Entry& own) noexcept {
  own.close();
  open_ &= &own == &shared_ ? open_ : ~own_bit();
  bytes_.collect(own.bytes);
  count_.collect(own.count);
}

// Gives the entry a share of the amount that may be allocated before the peak rises. The shares of
// all threads are about equal.
void UsageCounter::open(Entry& own) noexcept {
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
    lock_.assert_held();
    for (auto bits = open_; bits != 0; bits &= bits - 1) {
      visit(entry_of(static_cast<std::uint32_t>(std::countr_zero(bits))));
    }
  };
  for_each_open([](Entry& each) { each.close(); });
  const bool has_other_open = open_ != own_bit();
  if (has_other_open) {
    fence_all_threads();
  }
  for_each_open([&](Entry& each) {
    lock_.assert_held();
    bytes_.collect(each.bytes);
    count_.collect(each.count);
  });
  open_ = 0;
  if (has_other_open) {
    const auto allocations = all_in(&Entry::count);
    closed_calls_ = allocations - closed_at_ < k_min_closing_interval ? k_min_closing_interval : 0;
    closed_at_ = allocations;
  }
}

std::uint64_t UsageCounter::all_in(Flow Entry::*value) noexcept {
  auto all = (shared_.*value).in.load(k_acquire);
  for (auto bits = claimed_; bits != 0; bits &= bits - 1) {
    all += (entry_of(static_cast<std::uint32_t>(std::countr_zero(bits))).*value).in.load(k_acquire);
  }
  return all;
}

auto UsageCounter::read() noexcept -> Counts { return read_clamped(0); }

auto UsageCounter::read_signed() noexcept -> Counts {
  return read_clamped(std::numeric_limits<Difference>::min());
}

auto UsageCounter::read_clamped(Difference min) noexcept -> Counts {
  const os::LockUnlessForked hold{lock_};
  close_all();
  bytes_.raise_peak();
  count_.raise_peak();
  const auto live = [min](const Sum& sum) {
    return static_cast<std::uint64_t>(std::max(sum.live(), min));
  };
  return Counts{
      {live(bytes_), live(count_)},
      {bytes_.peak, count_.peak},
      {all_in(&Entry::bytes) - bytes_.base_total, all_in(&Entry::count) - count_.base_total}};
}

void UsageCounter::reset() noexcept {
  const os::LockUnlessForked hold{lock_};
  close_all();
  bytes_.reset(all_in(&Entry::bytes));
  count_.reset(all_in(&Entry::count));
}

}  // namespace isthmus
