#include "transfer/pinned_slots.hpp"

#include <bit>
#include <mutex>
#include <new>
#include <utility>

#include "backend/context.hpp"
#include "backend/platform.hpp"
#include "memory/host_memory.hpp"

namespace isthmus {
namespace {

constexpr allocation_request k_all{ISTHMUS_KIND_HOST,
                                   pinned_slots::k_units* pinned_slots::k_unit_bytes, 0};

// The lowest of so many free units in a row; none: 0.
std::uint64_t lowest_run(std::uint64_t free, std::size_t units) noexcept {
  auto begins = free;
  for (std::size_t more = 1; more < units; ++more) {
    begins &= free >> more;
  }
  const auto first = begins & (~begins + 1);
  return first * ((std::uint64_t{1} << units) - 1);
}

}  // namespace

pinned_slots::~pinned_slots() {
  if (auto* const memory = memory_.load(std::memory_order_relaxed)) {
    if (auto home = where_.home().default_context()) {
      (*home)->deallocate(memory, k_all.kind, k_all.nbytes);
    }
    host_memory::only().give_back(where_, k_all.nbytes);
  }
}

std::byte* pinned_slots::make() const noexcept try {
  auto home = where_.home().default_context();
  if (!home || !host_memory::only().take(where_, k_all)) {
    return nullptr;
  }
  auto memory = (*home)->allocate(where_, k_all);
  if (!memory) {
    host_memory::only().give_back(where_, k_all.nbytes);
  }
  return memory ? static_cast<std::byte*>(*memory) : nullptr;
} catch (const std::bad_alloc&) {
  return nullptr;
}

bool pinned_slots::is_there() noexcept {
  if (memory_.load(std::memory_order_acquire) != nullptr) {
    return true;
  }
  if (is_being_made_.exchange(true, std::memory_order_acquire)) {
    return false;
  }
  if (memory_.load(std::memory_order_relaxed) == nullptr) {
    memory_.store(make(), std::memory_order_release);
  }
  is_being_made_.store(false, std::memory_order_release);
  return memory_.load(std::memory_order_relaxed) != nullptr;
}

std::uint64_t pinned_slots::claim(std::size_t units) noexcept {
  const std::lock_guard hold{lock_};
  const auto run = lowest_run(free_, units);
  free_ &= ~run;
  return run;
}

// For the caller to let go of outside the lock; null: there is none.
ref<event> pinned_slots::drop_newest_if_settled() noexcept {
  const std::lock_guard hold{lock_};
  if (count_ == 0 || !flight_at(count_ - 1).ended->settled()) {
    return nullptr;
  }
  auto& newest = flight_at(--count_);
  free_ |= newest.units;
  return std::exchange(newest.ended, nullptr);
}

bool pinned_slots::free_oldest() noexcept {
  flight oldest;
  {
    const std::lock_guard hold{lock_};
    if (count_ == 0) {
      return false;
    }
    std::swap(oldest, flight_at(0));
    first_ = (first_ + 1) % k_units;
    --count_;
  }
  const bool runs = oldest.ended->pending();
  const std::lock_guard hold{lock_};
  if (runs) {
    first_ = (first_ + k_units - 1) % k_units;
    ++count_;
    std::swap(oldest, flight_at(0));
    return false;
  }
  free_ |= oldest.units;
  return true;
}

pinned_slots::slot pinned_slots::take(std::size_t nbytes) noexcept {
  if (!is_there()) {
    return {};
  }
  while (drop_newest_if_settled()) {
  }
  const auto units = (nbytes + k_unit_bytes - 1) / k_unit_bytes;
  for (;;) {
    if (const auto run = claim(units)) {
      const auto first = static_cast<std::size_t>(std::countr_zero(run));
      return {memory_.load(std::memory_order_relaxed) + first * k_unit_bytes, run};
    }
    if (!free_oldest()) {
      return {};
    }
  }
}

void pinned_slots::keep_till(const slot& used, ref<event> ended) noexcept {
  const std::lock_guard hold{lock_};
  flight_at(count_) = {used.units, std::move(ended)};
  ++count_;
}

void pinned_slots::give_back(const slot& unused) noexcept {
  const std::lock_guard hold{lock_};
  free_ |= unused.units;
}

}  // namespace isthmus
