// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/region_heap.hpp"

#include <algorithm>
#include <thread>

#include "core/lock_guard.hpp"
#include "core/sizes.hpp"

namespace isthmus {
namespace {

// Gives waiting threads a chance to take the lock; without the yield its owner would reacquire it
// before any of them.
void yield_lock(SpinLock& lock) noexcept ISTHMUS_REQUIRES(lock) {
  lock.unlock();
  std::this_thread::yield();
  lock.lock();
}

}  // namespace

Result<void> RegionHeap::open() {
  auto table = PoolPageTable::acquire();
  ISTHMUS_TRY(table);
  table_ = *table;
  const LockGuard hold{lock_};
  runs_ = RunHeap{&(*table_)[0], &table_->ticket_of(0), &table_->borders(), fences_};
  return {};
}

RegionHeap::~RegionHeap() {
  for (const auto& each : regions_) {
    process_page_map.remove(each.base, each.count);
    source_.deallocate(each);
  }
  if (table_ != nullptr) {
    table_->release();
  }
}

// The page was looked up from a caller's address, so its region may have been released.
std::uint64_t RegionHeap::since(const PoolPage& page) const noexcept {
  if (source_.upstream() == nullptr) {
    return 0;
  }
  const auto number = table_->number_of(&page);
  const LockGuard hold{lock_};
  return regions_.since(number);
}

bool RegionHeap::is_spared(Index found, Index count, Cut cut) const noexcept {
  const auto length = runs_.length_of(found);
  if (cut == Cut::any || source_.moves() || !swap_credit_.suffices() || length / 2 <= count ||
      length * k_pool_page_bytes <= source_.growth_for(count * k_pool_page_bytes)) {
    return false;
  }
  const auto& region = *regions_.find(found);
  const auto held = source_.counts().held_bytes();
  return length == region.count &&
         held - std::min(held, region.driver_bytes) >= source_.sizes().initial_bytes &&
         (cut == Cut::sparing || fences_.passed(runs_.ticket_of(found)));
}

RegionHeap::Index RegionHeap::unite(Index wanted, QueueFences::EntryIndex entry) noexcept {
  const auto state = runs_.state();
  if (state && state == failed_search_.state && entry == failed_search_.entry &&
      wanted >= failed_search_.wanted) {
    return RunHeap::k_none;
  }
  RunHeap::Search search;
  for (;;) {
    runs_.unite(search, wanted, entry);
    if (search.found != RunHeap::k_none || search.next == RunHeap::k_none) {
      break;
    }
    yield_lock(lock_);
  }
  if (search.found == RunHeap::k_none) {
    failed_search_ = {state, wanted, entry};
  }
  return search.found;
}

void RegionHeap::unite_all(QueueFences::EntryIndex entry) noexcept {
  for (auto progress = runs_.unite_all(1, entry); progress.next != RunHeap::k_none;) {
    yield_lock(lock_);
    progress = runs_.unite_all(progress.next, entry);
  }
}

RegionHeap::PageRun RegionHeap::allocate(Index count, std::size_t alignment,
                                         QueueFences::EntryIndex entry, Cut cut) noexcept {
  const auto slack =
      alignment > k_pool_page_bytes ? static_cast<Index>(alignment / k_pool_page_bytes) - 1 : 0;
  const LockGuard hold{lock_};
  const auto wanted = count + slack;
  if (cut == Cut::sparing) {
    swap_credit_.earn();
  }
  auto first = runs_.find(wanted, entry);
  if (first == RunHeap::k_none && runs_.free_pages() >= wanted) {
    first = unite(wanted, entry);
  }
  if (first == RunHeap::k_none || is_spared(first, wanted, cut)) {
    return {};
  }
  runs_.allocate(first, wanted);
  auto* base = regions_.address_of(first);
  if (slack != 0) {
    const auto skip = round_up(address(base), alignment) - address(base);
    first = runs_.keep_part(first, static_cast<Index>(skip / k_pool_page_bytes), count);
    base += skip;
  }
  min_free_ = std::min(min_free_, runs_.free_pages());
  return {base, first, count, runs_.ticket_of(first)};
}

bool RegionHeap::poison_if_unused(Index first, Index count, Ticket until) const noexcept {
  const bool is_unused = source_.poison().is_enabled() && fences_.passed(until);
  if (is_unused) {
    source_.poison().apply(regions_.address_of(first), count * k_pool_page_bytes);
  }
  return is_unused;
}

// Call before free runs are joined, since joined runs retain only one ticket.
void RegionHeap::poison_ended_runs() const noexcept {
  if (source_.poison().is_enabled()) {
    runs_.visit_free(1, [this](Index first, Index count, Ticket until) {
      lock_.assert_held();
      if (until != Ticket{} && poison_if_unused(first, count, until)) {
        table_->ticket_of(first) = {};
      }
    });
  }
}

void RegionHeap::deallocate(Index first, Ticket freed) noexcept {
  const LockGuard hold{lock_};
  poison_ended_runs();
  const bool poisoned = poison_if_unused(first, runs_.length_of(first), freed);
  runs_.deallocate(first, poisoned ? Ticket{} : freed);
}

// Runs that could not be joined when they were freed can be joined only after a ticket has passed.
void RegionHeap::coalesce() noexcept {
  const LockGuard hold{lock_};
  const auto passes = fences_.passes();
  poison_ended_runs();
  if (passes && passes == coalesced_at_) {
    return;
  }
  for (auto progress = runs_.coalesce(1); progress.next != RunHeap::k_none;) {
    yield_lock(lock_);
    poison_ended_runs();
    progress = runs_.coalesce(progress.next);
  }
  coalesced_at_ = passes;
}

Error RegionHeap::exceeds_max(std::size_t nbytes) {
  return fail(ISTHMUS_ERROR_OUT_OF_MEMORY, "a pool cannot hold {}: the maximum is {}",
              describe_bytes(nbytes), describe_bytes(k_max_bytes));
}

Result<void> RegionHeap::enter(std::vector<Piece>& row) {
  std::size_t nbytes = 0;
  Ticket until;
  for (const auto& each : row) {
    nbytes += each.region.nbytes();
    until = fences_.joined(until, each.until);
  }
  const auto count = static_cast<Index>(nbytes / k_pool_page_bytes);
  auto* const base = row.front().region.base;
  ISTHMUS_TRY(process_page_map.prepare(base, count));
  const LockGuard hold{lock_};
  const auto first = regions_.find_numbers(count);
  if (first == RunHeap::k_none) {
    return exceeds_max(nbytes);
  }
  regions_.reserve(row.size());
  auto number = first;
  for (auto& each : row) {
    each.region.first = number;
    number += each.region.count;
    regions_.insert(each.region);
  }
  process_page_map.enter(base, count, &(*table_)[first]);
  runs_.add(first, count, until);
  static_cast<void>(poison_if_unused(first, count, until));
  row.clear();
  return {};
}

std::size_t RegionHeap::free_bytes() noexcept {
  const LockGuard hold{lock_};
  return runs_.free_pages() * k_pool_page_bytes;
}

std::size_t RegionHeap::min_free_bytes() noexcept {
  const LockGuard hold{lock_};
  const auto free_pages = runs_.free_pages();
  return std::min(free_pages, std::exchange(min_free_, free_pages)) * k_pool_page_bytes;
}

Result<void> RegionHeap::verify() noexcept {
  const LockGuard hold{lock_};
  std::uint64_t free = 0;
  std::uint64_t neighbours = 0;
  auto damaged = RunHeap::k_none;
  regions_.any_row([&](Index first, Index count) {
    lock_.assert_held();
    const auto finding = runs_.find_damage(first, count);
    free += finding.free;
    neighbours += finding.neighbours;
    damaged = finding.at;
    return damaged != RunHeap::k_none;
  });
  if (damaged != RunHeap::k_none) {
    return fail(ISTHMUS_ERROR_INTERNAL,
                "the record of the 64 KiB page at {} contradicts the adjacent records",
                static_cast<void*>(regions_.address_of(damaged)));
  }
  if (free != runs_.free_pages()) {
    return fail(ISTHMUS_ERROR_INTERNAL,
                "the page records show {} of free memory, but the counter shows {}",
                describe_bytes(free * k_pool_page_bytes),
                describe_bytes(runs_.free_pages() * k_pool_page_bytes));
  }
  if (neighbours != runs_.neighbours()) {
    return fail(ISTHMUS_ERROR_INTERNAL,
                "{} pairs of free page runs are adjacent, but {} are recorded", neighbours,
                runs_.neighbours());
  }
  return {};
}

}  // namespace isthmus
