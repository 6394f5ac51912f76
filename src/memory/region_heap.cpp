// SPDX-License-Identifier: Apache-2.0
#include "memory/region_heap.hpp"

#include <algorithm>
#include <thread>

#include "core/sizes.hpp"

namespace isthmus {
namespace {

// Gives waiting threads a chance to take the lock; without the yield its owner would reacquire it
// before any of them.
void let_others(std::unique_lock<SpinLock>& hold) noexcept {
  hold.unlock();
  std::this_thread::yield();
  hold.lock();
}

}  // namespace

Result<void> RegionHeap::open() {
  auto table = PoolPageTable::take();
  ISTHMUS_TRY(table);
  table_ = *table;
  runs_ = RunHeap{&(*table_)[0], &table_->ticket_of(0), &table_->borders(), slots_};
  return {};
}

RegionHeap::~RegionHeap() {
  std::for_each(late_.begin(), late_.end(), [this](const Piece& each) { release_now(each); });
  for (const auto& each : regions_) {
    process_page_map.remove(each.base, each.count);
    source_.give_back(each);
  }
  if (table_ != nullptr) {
    table_->give_back();
  }
}

// Pre: the lock is held, and a region contains the page.
std::vector<Region>::const_iterator RegionHeap::region_of(Index number) const noexcept {
  return std::prev(
      std::upper_bound(regions_.begin(), regions_.end(), number,
                       [](Index wanted, const Region& each) { return wanted < each.first; }));
}

std::byte* RegionHeap::address_of(Index first) const noexcept {
  const auto& in = *region_of(first);
  return in.base + std::size_t{first - in.first} * k_pool_page_bytes;
}

// The page comes from an address of a caller's: its region may have been released.
std::uint64_t RegionHeap::since(const PoolPage& grain) const noexcept {
  if (!source_.upstream().is_there()) {
    return 0;
  }
  const auto number = table_->number_of(&grain);
  const std::lock_guard hold{lock_};
  const auto behind =
      std::upper_bound(regions_.begin(), regions_.end(), number,
                       [](Index wanted, const Region& each) { return wanted < each.first; });
  return behind == regions_.begin() ? 0 : std::prev(behind)->since;
}

// Pre: the lock is held.
bool RegionHeap::is_spared(Index found, Index count, Cut cut) const noexcept {
  const auto length = runs_.length_of(found);
  if (cut == Cut::any || source_.moves() || thrift_ < k_swap_costs || length / 2 <= count ||
      length * k_pool_page_bytes <= source_.growth_for(count * k_pool_page_bytes)) {
    return false;
  }
  const auto& in = *region_of(found);
  const auto held = source_.counts().held_bytes();
  return length == in.count &&
         held - std::min(held, in.driver_bytes) >= source_.how().initial_bytes &&
         (cut == Cut::sparing || slots_.passed(runs_.ticket_of(found)));
}

// Pre: `hold` owns the lock, which is released and reacquired in between.
RegionHeap::Index RegionHeap::unite(Index wanted, QueueSlots::Slot slot,
                                    std::unique_lock<SpinLock>& hold) noexcept {
  const auto begun = runs_.now();
  if (begun && begun == vain_.when && slot == vain_.whom && wanted >= vain_.wanted) {
    return RunHeap::k_none;
  }
  RunHeap::Search seen;
  for (;;) {
    runs_.unite(seen, wanted, slot);
    if (seen.found != RunHeap::k_none || seen.next == RunHeap::k_none) {
      break;
    }
    let_others(hold);
  }
  if (seen.found == RunHeap::k_none) {
    vain_ = {begun, wanted, slot};
  }
  return seen.found;
}

void RegionHeap::unite_all(QueueSlots::Slot slot, std::unique_lock<SpinLock>& hold) noexcept {
  for (auto seen = runs_.unite_all(1, slot); seen.next != RunHeap::k_none;) {
    let_others(hold);
    seen = runs_.unite_all(seen.next, slot);
  }
}

RegionHeap::PageRun RegionHeap::take(Index count, std::size_t alignment, QueueSlots::Slot slot,
                                     Cut cut) noexcept {
  const auto slack =
      alignment > k_pool_page_bytes ? static_cast<Index>(alignment / k_pool_page_bytes) - 1 : 0;
  std::unique_lock hold{lock_};
  const auto wanted = count + slack;
  thrift_ = std::min(thrift_ + (cut == Cut::sparing ? 1 : 0), k_most_thrift);
  auto first = runs_.find(wanted, slot);
  if (first == RunHeap::k_none && runs_.free_grains() >= wanted) {
    first = unite(wanted, slot, hold);
  }
  if (first == RunHeap::k_none || is_spared(first, wanted, cut)) {
    return {};
  }
  runs_.take(first, wanted);
  auto* base = address_of(first);
  if (slack != 0) {
    const auto skip = round_up(address(base), alignment) - address(base);
    first = runs_.keep(first, static_cast<Index>(skip / k_pool_page_bytes), count);
    base += skip;
  }
  least_free_ = std::min(least_free_, runs_.free_grains());
  return {base, first, count, runs_.ticket_of(first)};
}

bool RegionHeap::put_poison(Index first, Index count, Ticket until) const noexcept {
  const bool is_unused = source_.poison().is_on() && slots_.passed(until);
  if (is_unused) {
    source_.poison().put(address_of(first), count * k_pool_page_bytes);
  }
  return is_unused;
}

// Call before free runs are joined, since only one ticket remains of those joined.
void RegionHeap::put_poison_where_work_ended() const noexcept {
  if (source_.poison().is_on()) {
    runs_.visit_free(1, [this](Index first, Index count, Ticket until) {
      if (until != Ticket{} && put_poison(first, count, until)) {
        table_->ticket_of(first) = {};
      }
    });
  }
}

void RegionHeap::give(Index first, Ticket freed) noexcept {
  const std::lock_guard hold{lock_};
  put_poison_where_work_ended();
  const bool poisoned = put_poison(first, runs_.length_of(first), freed);
  runs_.give(first, poisoned ? Ticket{} : freed);
}

// What could not be joined when it was freed still cannot be, until a ticket passes.
void RegionHeap::coalesce() noexcept {
  std::unique_lock hold{lock_};
  const auto passes = slots_.passes();
  put_poison_where_work_ended();
  if (passes && passes == settled_at_) {
    return;
  }
  for (auto seen = runs_.settle(1); seen.next != RunHeap::k_none;) {
    let_others(hold);
    put_poison_where_work_ended();
    seen = runs_.settle(seen.next);
  }
  settled_at_ = passes;
}

// The first of `count` consecutive free page numbers with a number of no region on either side.
// Pre: the lock is held.
RegionHeap::Index RegionHeap::find_numbers(Index count) noexcept {
  Index from = 1;
  for (const auto& each : regions_) {
    if (each.first >= from && each.first - from > count) {
      return from;
    }
    from = each.first + each.count + 1;
  }
  return PoolPageTable::k_pages - from > count ? from : RunHeap::k_none;
}

// Enters a row of adjacent regions as one free run.
Result<void> RegionHeap::enter(std::vector<Piece>& row) {
  std::size_t nbytes = 0;
  Ticket until;
  for (const auto& each : row) {
    nbytes += each.what.nbytes();
    until = slots_.joined(until, each.until);
  }
  const auto count = static_cast<Index>(nbytes / k_pool_page_bytes);
  auto* const base = row.front().what.base;
  ISTHMUS_TRY(process_page_map.prepare(base, count));
  const std::lock_guard hold{lock_};
  const auto first = find_numbers(count);
  if (first == RunHeap::k_none) {
    return beyond_all(nbytes);
  }
  regions_.reserve(regions_.size() + row.size());
  auto at = std::upper_bound(regions_.begin(), regions_.end(), first,
                             [](Index wanted, const Region& each) { return wanted < each.first; });
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

std::size_t RegionHeap::free_bytes() noexcept {
  const std::lock_guard hold{lock_};
  return runs_.free_grains() * k_pool_page_bytes;
}

std::size_t RegionHeap::least_free_bytes() noexcept {
  const std::lock_guard hold{lock_};
  const auto now = runs_.free_grains();
  return std::min(now, std::exchange(least_free_, now)) * k_pool_page_bytes;
}

}  // namespace isthmus
