// SPDX-License-Identifier: Apache-2.0
#include "memory/region_heap.hpp"

#include <algorithm>
#include <thread>

#include "core/sizes.hpp"

namespace isthmus {
namespace {

// Gives waiting threads a chance to take the lock; without the yield its owner would reacquire it
// before any of them.
void let_others(std::unique_lock<spin_lock>& hold) noexcept {
  hold.unlock();
  std::this_thread::yield();
  hold.lock();
}

}  // namespace

result<void> region_heap::open() {
  auto table = grain_table::take();
  ISTHMUS_TRY(table);
  table_ = *table;
  runs_ = run_heap{&(*table_)[0], &table_->ticket_of(0), &table_->borders(), slots_};
  return {};
}

region_heap::~region_heap() {
  std::for_each(late_.begin(), late_.end(), [this](const piece& each) { let_go(each); });
  for (const auto& each : regions_) {
    process_page_map.remove(each.base, each.count);
    source_.give_back(each);
  }
  if (table_ != nullptr) {
    table_->give_back();
  }
}

// Pre: the lock is held, and a region contains the page.
std::vector<region>::const_iterator region_heap::region_of(index number) const noexcept {
  return std::prev(
      std::upper_bound(regions_.begin(), regions_.end(), number,
                       [](index wanted, const region& each) { return wanted < each.first; }));
}

std::byte* region_heap::address_of(index first) const noexcept {
  const auto& in = *region_of(first);
  return in.base + std::size_t{first - in.first} * k_grain_bytes;
}

// The page comes from an address of a caller's: its region may have been released.
std::uint64_t region_heap::since(const grain& of) const noexcept {
  if (!source_.upstream().is_there()) {
    return 0;
  }
  const auto number = table_->number_of(&of);
  const std::lock_guard hold{lock_};
  const auto behind =
      std::upper_bound(regions_.begin(), regions_.end(), number,
                       [](index wanted, const region& each) { return wanted < each.first; });
  return behind == regions_.begin() ? 0 : std::prev(behind)->since;
}

// Pre: the lock is held.
bool region_heap::is_spared(index found, index count, cut from) const noexcept {
  const auto length = runs_.length_of(found);
  if (from == cut::any || source_.moves() || thrift_ < k_swap_costs || length / 2 <= count ||
      length * k_grain_bytes <= source_.growth_for(count * k_grain_bytes)) {
    return false;
  }
  const auto& in = *region_of(found);
  const auto held = source_.counts().held_bytes();
  return length == in.count &&
         held - std::min(held, in.driver_bytes) >= source_.how().initial_bytes &&
         (from == cut::sparing || slots_.passed(runs_.ticket_of(found)));
}

// Pre: `hold` owns the lock, which is released and reacquired in between.
region_heap::index region_heap::unite(index wanted, queue_slots::slot whom,
                                      std::unique_lock<spin_lock>& hold) noexcept {
  const auto begun = runs_.now();
  if (begun && begun == vain_.when && whom == vain_.whom && wanted >= vain_.wanted) {
    return run_heap::k_none;
  }
  run_heap::search seen;
  for (;;) {
    runs_.unite(seen, wanted, whom);
    if (seen.found != run_heap::k_none || seen.next == run_heap::k_none) {
      break;
    }
    let_others(hold);
  }
  if (seen.found == run_heap::k_none) {
    vain_ = {begun, wanted, whom};
  }
  return seen.found;
}

void region_heap::unite_all(queue_slots::slot whom, std::unique_lock<spin_lock>& hold) noexcept {
  for (auto seen = runs_.unite_all(1, whom); seen.next != run_heap::k_none;) {
    let_others(hold);
    seen = runs_.unite_all(seen.next, whom);
  }
}

region_heap::run region_heap::take(index count, std::size_t alignment, queue_slots::slot whom,
                                   cut from) noexcept {
  const auto slack =
      alignment > k_grain_bytes ? static_cast<index>(alignment / k_grain_bytes) - 1 : 0;
  std::unique_lock hold{lock_};
  const auto wanted = count + slack;
  thrift_ = std::min(thrift_ + (from == cut::sparing ? 1 : 0), k_most_thrift);
  auto first = runs_.find(wanted, whom);
  if (first == run_heap::k_none && runs_.free_grains() >= wanted) {
    first = unite(wanted, whom, hold);
  }
  if (first == run_heap::k_none || is_spared(first, wanted, from)) {
    return {};
  }
  runs_.take(first, wanted);
  auto* base = address_of(first);
  if (slack != 0) {
    const auto skip = round_up(address(base), alignment) - address(base);
    first = runs_.keep(first, static_cast<index>(skip / k_grain_bytes), count);
    base += skip;
  }
  least_free_ = std::min(least_free_, runs_.free_grains());
  return {base, first, count, runs_.ticket_of(first)};
}

bool region_heap::put_poison(index first, index count, ticket until) const noexcept {
  const bool is_unused = source_.poison().is_on() && slots_.passed(until);
  if (is_unused) {
    source_.poison().put(address_of(first), count * k_grain_bytes);
  }
  return is_unused;
}

// Call before free runs are joined, since only one ticket remains of those joined.
void region_heap::put_poison_where_work_ended() const noexcept {
  if (source_.poison().is_on()) {
    runs_.visit_free(1, [this](index first, index count, ticket until) {
      if (until != ticket{} && put_poison(first, count, until)) {
        table_->ticket_of(first) = {};
      }
    });
  }
}

void region_heap::give(index first, ticket freed) noexcept {
  const std::lock_guard hold{lock_};
  put_poison_where_work_ended();
  const bool poisoned = put_poison(first, runs_.length_of(first), freed);
  runs_.give(first, poisoned ? ticket{} : freed);
}

// What could not be joined when it was freed still cannot be, until a ticket passes.
void region_heap::settle() noexcept {
  std::unique_lock hold{lock_};
  const auto passes = slots_.passes();
  put_poison_where_work_ended();
  if (passes && passes == settled_at_) {
    return;
  }
  for (auto seen = runs_.settle(1); seen.next != run_heap::k_none;) {
    let_others(hold);
    put_poison_where_work_ended();
    seen = runs_.settle(seen.next);
  }
  settled_at_ = passes;
}

// The first of `count` consecutive free page numbers with a number of no region on either side.
// Pre: the lock is held.
region_heap::index region_heap::find_numbers(index count) noexcept {
  index from = 1;
  for (const auto& each : regions_) {
    if (each.first >= from && each.first - from > count) {
      return from;
    }
    from = each.first + each.count + 1;
  }
  return grain_table::k_grains - from > count ? from : run_heap::k_none;
}

// Enters a row of adjacent regions as one free run.
result<void> region_heap::enter(std::vector<piece>& row) {
  std::size_t nbytes = 0;
  ticket until;
  for (const auto& each : row) {
    nbytes += each.what.nbytes();
    until = slots_.joined(until, each.until);
  }
  const auto count = static_cast<index>(nbytes / k_grain_bytes);
  auto* const base = row.front().what.base;
  ISTHMUS_TRY(process_page_map.prepare(base, count));
  const std::lock_guard hold{lock_};
  const auto first = find_numbers(count);
  if (first == run_heap::k_none) {
    return beyond_all(nbytes);
  }
  regions_.reserve(regions_.size() + row.size());
  auto at = std::upper_bound(regions_.begin(), regions_.end(), first,
                             [](index wanted, const region& each) { return wanted < each.first; });
  auto number = first;
  for (auto& each : row) {
    each.what.first = number;
    number += each.what.count;
    at = std::next(regions_.insert(at, each.what));
  }
  process_page_map.enter(base, count, &(*table_)[first]);
  runs_.add(first, count, until);
  static_cast<void>(put_poison(first, count, until));
  row.clear();
  return {};
}

std::size_t region_heap::free_bytes() noexcept {
  const std::lock_guard hold{lock_};
  return runs_.free_grains() * k_grain_bytes;
}

std::size_t region_heap::least_free_bytes() noexcept {
  const std::lock_guard hold{lock_};
  const auto now = runs_.free_grains();
  return std::min(now, std::exchange(least_free_, now)) * k_grain_bytes;
}

}  // namespace isthmus
