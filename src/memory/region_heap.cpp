#include "memory/region_heap.hpp"

#include <algorithm>
#include <new>

#include "core/sizes.hpp"
#include "memory/provider.hpp"
#include "os/process.hpp"
#include "os/virtual_memory.hpp"

namespace isthmus {

result<void> region_heap::open() {
  auto table = grain_table::take();
  ISTHMUS_TRY(table);
  table_ = *table;
  runs_ = run_heap{&(*table_)[0], &table_->ticket_of(0), slots_};
  return {};
}

region_heap::~region_heap() {
  for (const auto& each : regions_) {
    process_page_map.remove(each.base, each.count);
    give_back(each);
  }
  if (table_ != nullptr) {
    table_->give_back();
  }
}

// Pre: under the lock; a region has it.
std::byte* region_heap::address_of(index first) const noexcept {
  const auto behind =
      std::upper_bound(regions_.begin(), regions_.end(), first,
                       [](index number, const region& each) { return number < each.first; });
  const auto& in = *std::prev(behind);
  return in.base + std::size_t{first - in.first} * k_grain_bytes;
}

region_heap::run region_heap::take(index count, std::size_t alignment,
                                   queue_slots::slot whom) noexcept {
  const auto slack =
      alignment > k_grain_bytes ? static_cast<index>(alignment / k_grain_bytes) - 1 : 0;
  const std::lock_guard hold{lock_};
  auto first = runs_.take(count + slack, whom);
  if (first == run_heap::k_none) {
    return {};
  }
  auto* base = address_of(first);
  if (slack != 0) {
    const auto skip = round_up(address(base), alignment) - address(base);
    first = runs_.keep(first, static_cast<index>(skip / k_grain_bytes), count);
    base += skip;
  }
  return {base, first, count, runs_.ticket_of(first)};
}

void region_heap::give(index first, ticket freed) noexcept {
  const std::lock_guard hold{lock_};
  runs_.give(first, freed);
}

void region_heap::settle() noexcept {
  const std::lock_guard hold{lock_};
  for (const auto& each : regions_) {
    runs_.settle(each.first, each.count);
  }
}

// Counts the bytes as held before the driver is asked, so that threads that grow at the same moment
// stay within the limit together.
bool region_heap::claim(std::size_t nbytes) noexcept {
  auto held = held_.load(std::memory_order_relaxed);
  do {
    if (nbytes > how_.limit_bytes || held > how_.limit_bytes - nbytes) {
      return false;
    }
  } while (!held_.compare_exchange_weak(held, held + nbytes, std::memory_order_relaxed));
  return true;
}

error region_heap::beyond_limit(std::size_t nbytes) const {
  return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
              "a pool of {} memory on {} would need {} more and holds {} of at most {}: free "
              "buffers, ask for less or raise its limit",
              kind_name(kind_), where_.properties().filter, describe_bytes(nbytes),
              describe_bytes(held_bytes()), describe_bytes(how_.limit_bytes));
}

// Pre: whole grains. The driver may not align to grains: then one more is asked for.
result<region_heap::region> region_heap::ask_driver(std::size_t nbytes) {
  const bool aligns = where_.properties().max_alignment >= k_grain_bytes;
  const std::size_t asked = aligns ? nbytes : nbytes + k_grain_bytes;
  if (!claim(asked)) {
    return beyond_limit(asked);
  }
  auto given = provider_allocate(home_, where_, {kind_, asked, aligns ? k_grain_bytes : 0});
  if (!given) {
    held_.fetch_sub(asked, std::memory_order_relaxed);
    return given.take_error();
  }
  maps_.fetch_add(1, std::memory_order_relaxed);
  auto* base = static_cast<std::byte*>(*given);
  return region{*given, asked, base + (round_up(address(base), k_grain_bytes) - address(base)), 0,
                static_cast<index>(nbytes / k_grain_bytes)};
}

// The first number of `count` free ones, with one of no region on either side. Pre: under the lock.
region_heap::index region_heap::find_numbers(index count) noexcept {
  index from = 1;
  for (const auto& each : regions_) {
    if (each.first - from > count) {
      return from;
    }
    from = each.first + each.count + 1;
  }
  return grain_table::k_grains - from > count ? from : run_heap::k_none;
}

result<void> region_heap::enter(region made) try {
  std::vector<region> all;
  const std::lock_guard hold{lock_};
  all.reserve(regions_.size() + 1);
  made.first = find_numbers(made.count);
  if (made.first == run_heap::k_none) {
    return fail(ISTHMUS_ERROR_OUT_OF_MEMORY, "a pool keeps at most {}",
                describe_bytes(std::size_t{grain_table::k_grains} * k_grain_bytes));
  }
  ISTHMUS_TRY(process_page_map.enter(made.base, made.count, &(*table_)[made.first]));
  const auto before = [](const region& a, const region& b) { return a.first < b.first; };
  all = regions_;
  all.insert(std::upper_bound(all.begin(), all.end(), made, before), made);
  all.swap(regions_);
  runs_.add(made.first, made.count);
  return {};
} catch (const std::bad_alloc&) {
  return error::no_memory();
}

result<void> region_heap::grow(index count, std::size_t alignment) {
  const auto slack = alignment > k_grain_bytes ? alignment - k_grain_bytes : 0;
  const auto needed = count * k_grain_bytes + slack;
  if (needed < how_.growth_bytes && grow_by(how_.growth_bytes)) {
    return {};
  }
  return grow_by(needed);
}

result<void> region_heap::grow_by(std::size_t nbytes) {
  if (nbytes > std::size_t{grain_table::k_grains} * k_grain_bytes) {
    return fail(ISTHMUS_ERROR_OUT_OF_MEMORY, "a pool keeps at most {}, not {}",
                describe_bytes(std::size_t{grain_table::k_grains} * k_grain_bytes),
                describe_bytes(nbytes));
  }
  auto made = ask_driver(round_up(std::max<std::size_t>(nbytes, 1), k_grain_bytes));
  ISTHMUS_TRY(made);
  auto entered = enter(*made);
  if (!entered) {
    held_.fetch_sub(made->driver_bytes, std::memory_order_relaxed);
    give_back(*made);
  }
  return entered;
}

bool region_heap::take_out(std::size_t keep, region& out) noexcept {
  const std::lock_guard hold{lock_};
  const auto free = std::find_if(regions_.begin(), regions_.end(), [&](const region& each) {
    return held_bytes() - each.driver_bytes >= keep && runs_.is_free(each.first, each.count) &&
           slots_.passed(runs_.ticket_of(each.first));
  });
  if (free == regions_.end()) {
    return false;
  }
  out = *free;
  runs_.remove(out.first);
  process_page_map.remove(out.base, out.count);
  held_.fetch_sub(out.driver_bytes, std::memory_order_relaxed);
  regions_.erase(free);
  return true;
}

void region_heap::give_back(const region& gone) noexcept {
  unmaps_.fetch_add(1, std::memory_order_relaxed);
  if (!os::drivers_are_gone()) {
    provider_deallocate(home_, where_, kind_, gone.from_driver, gone.driver_bytes);
  }
}

std::size_t region_heap::trim(std::size_t keep) noexcept {
  std::size_t given_back = 0;
  for (region gone{}; take_out(keep, gone);) {
    give_back(gone);
    given_back += gone.driver_bytes;
  }
  return given_back;
}

std::size_t region_heap::free_bytes() noexcept {
  const std::lock_guard hold{lock_};
  return runs_.free_grains() * k_grain_bytes;
}

}  // namespace isthmus
