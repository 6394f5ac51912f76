// SPDX-License-Identifier: Apache-2.0
#pragma once
// The record of one page (`PoolPage`), which is 64 KiB of a pool's address space: it describes the
// use of the page.
//
// A pool keeps the records of its pages in one table, so that adjacent pages have adjacent records.
// A record that is never free separates regions. Records are written under the lock of the page-run
// heap, with two exceptions, which the owner of a run or block writes: the states `live`,
// `recorded` and `cached`, and the change from `slab` to `slab_recorded`. Any thread that has an
// address may read a record at any time, without a lock.

#include <atomic>
#include <cstdint>

#include "core/expects.hpp"

namespace isthmus {

struct Slab;

inline constexpr auto k_relaxed = std::memory_order_relaxed;

struct PoolPage {
  enum class State : std::uint8_t {
    none,           // in no region, or inside a free run
    free_head,      // first page of a free run
    free_last,      // last page of a free run of several pages
    live,           // first page of a run that a caller holds
    recorded,       // as `live`, and the run has an allocation record
    cached,         // first page of a run that a thread cache holds
    body,           // a later page of a run in use or cached
    slab,           // of a slab
    slab_recorded,  // as `slab`, and a block that begins here has, or had, an allocation record
  };

  // Flag of `link`; set in no address.
  static constexpr std::uint64_t k_is_list = std::uint64_t{1} << 63;

  std::atomic<State> state{State::none};
  // First page of a run: the number of its pages. `body`, `free_last`: the number of pages back to
  // the first one. `slab`: the slab's size class.
  std::atomic<std::uint32_t> span{0};
  // `free_head`: the runs before and after it in its list. `slab`: the address of the slab.
  std::atomic<std::uint64_t> link{0};

  [[nodiscard]] std::uint32_t previous() const noexcept {
    return static_cast<std::uint32_t>((link.load(k_relaxed) & ~k_is_list) >> 32);
  }
  [[nodiscard]] std::uint32_t next() const noexcept {
    return static_cast<std::uint32_t>(link.load(k_relaxed));
  }
  void set_links(std::uint32_t previous, std::uint32_t next) noexcept {
    link.store(k_is_list | std::uint64_t{previous} << 32 | next, k_relaxed);
  }
  [[nodiscard]] bool is_slab() const noexcept {
    const auto current = state.load(k_relaxed);
    return current == State::slab || current == State::slab_recorded;
  }
  // First page of a run that is not free.
  [[nodiscard]] bool begins_run() const noexcept {
    const auto current = state.load(k_relaxed);
    return current == State::live || current == State::recorded || current == State::cached;
  }
  // First page of a run that a caller holds.
  [[nodiscard]] bool is_live_run() const noexcept {
    const auto current = state.load(k_relaxed);
    return current == State::live || current == State::recorded;
  }
  // Acquire, so that the caller sees what was stored before `mark_recorded`.
  [[nodiscard]] bool is_recorded() const noexcept {
    const auto current = state.load(std::memory_order_acquire);
    return current == State::recorded || current == State::slab_recorded;
  }
  void mark_recorded() noexcept {
    ISTHMUS_EXPECTS(is_slab() || is_live_run(), state.load(k_relaxed));
    state.store(is_slab() ? State::slab_recorded : State::recorded, std::memory_order_release);
  }
  // Null if the page no longer belongs to a slab. Look-ups of stale pointers may find such pages. A
  // caller that holds no block of the slab needs acquire, so as to see the slab's fields.
  [[nodiscard]] Slab* in_slab(std::memory_order order = k_relaxed) const noexcept {
    const auto value = link.load(order);
    return (value & k_is_list) != 0 ? nullptr : reinterpret_cast<Slab*>(value);
  }
  void set_slab(Slab& owner, std::uint32_t size_class) noexcept {
    state.store(State::none, k_relaxed);  // until all fields are written
    span.store(size_class, k_relaxed);
    link.store(reinterpret_cast<std::uintptr_t>(&owner), std::memory_order_release);
    state.store(State::slab, k_relaxed);
  }
};

// The first page of the live or cached run that contains this page; null if there is none. Stale
// records of an earlier run are recognized by the length of the present run.
[[nodiscard]] inline PoolPage* first_of_run(PoolPage* page) noexcept {
  const auto state = page->state.load(k_relaxed);
  const auto distance =
      state == PoolPage::State::body ? page->span.load(k_relaxed) : std::uint32_t{0};
  auto* first = page - distance;
  return first->begins_run() && distance < first->span.load(k_relaxed) ? first : nullptr;
}

static_assert(sizeof(PoolPage) == 16, "0.024 % of the memory it describes");

}  // namespace isthmus
