// SPDX-License-Identifier: Apache-2.0
#pragma once
// The record of one page (`grain`), which is 64 KiB of a pool's address space: what lies there.
//
// A pool keeps the records of its pages in one table, so that adjacent pages have adjacent records.
// A record that is never free separates regions. Records are written under the lock of the page-run
// heap, with two exceptions that the owner of a run or block writes: the states `live`, `recorded`
// and `cached`, and the change from `slab` to `slab_recorded`. Any thread that has an address may
// read a record at any time, without a lock.

#include <atomic>
#include <cstdint>

namespace isthmus {

struct Slab;

inline constexpr auto k_relaxed = std::memory_order_relaxed;

struct PoolPage {
  enum class State : std::uint8_t {
    none,           // in no region, or inside a free run
    free_head,      // first page of a free run
    free_last,      // last page of a free run of several pages
    live,           // first page of a run that a caller has
    recorded,       // as `live`, and the run has an allocation record
    cached,         // first page of a run that a thread cache (`lane`) keeps
    body,           // a later page of a run in use or cached
    slab,           // of a slab
    slab_recorded,  // as `slab`, and a block that begins here has, or had, an allocation record
  };

  // Flag of `link`; set in no address.
  static constexpr std::uint64_t k_is_list = std::uint64_t{1} << 63;

  std::atomic<State> is{State::none};
  // First page of a run: its pages. `body`, `free_last`: pages back to the first one. `slab`: its
  // size class.
  std::atomic<std::uint32_t> span{0};
  // `free_head`: the runs before and after it in its list. `slab`: its address.
  std::atomic<std::uint64_t> link{0};

  [[nodiscard]] std::uint32_t before() const noexcept {
    return static_cast<std::uint32_t>((link.load(k_relaxed) & ~k_is_list) >> 32);
  }
  [[nodiscard]] std::uint32_t after() const noexcept {
    return static_cast<std::uint32_t>(link.load(k_relaxed));
  }
  void set_links(std::uint32_t before, std::uint32_t after) noexcept {
    link.store(k_is_list | std::uint64_t{before} << 32 | after, k_relaxed);
  }
  [[nodiscard]] bool is_slab() const noexcept {
    const auto now = is.load(k_relaxed);
    return now == State::slab || now == State::slab_recorded;
  }
  // First page of a run that is not free.
  [[nodiscard]] bool begins_run() const noexcept {
    const auto now = is.load(k_relaxed);
    return now == State::live || now == State::recorded || now == State::cached;
  }
  // First page of a run that a caller has.
  [[nodiscard]] bool is_live_run() const noexcept {
    const auto now = is.load(k_relaxed);
    return now == State::live || now == State::recorded;
  }
  [[nodiscard]] bool is_recorded() const noexcept {
    const auto now = is.load(k_relaxed);
    return now == State::recorded || now == State::slab_recorded;
  }
  // Precondition: live, or of a slab.
  void mark_recorded() noexcept {
    is.store(is_slab() ? State::slab_recorded : State::recorded, k_relaxed);
  }
  // Null if the page is no longer of a slab, which look-ups of stale pointers may find. A caller
  // that holds no block of the slab needs acquire, so as to see the slab's fields.
  [[nodiscard]] Slab* in_slab(std::memory_order order = k_relaxed) const noexcept {
    const auto at = link.load(order);
    return (at & k_is_list) != 0 ? nullptr : reinterpret_cast<Slab*>(at);
  }
  void set_slab(Slab& owner, std::uint32_t size_class) noexcept {
    is.store(State::none, k_relaxed);  // until all fields are written
    span.store(size_class, k_relaxed);
    link.store(reinterpret_cast<std::uintptr_t>(&owner), std::memory_order_release);
    is.store(State::slab, k_relaxed);
  }
};

// The first page of the run in use or cached that holds this page; null if there is none. Records
// that an earlier run left are recognized by the length of the run that is there now.
[[nodiscard]] inline PoolPage* first_of_run(PoolPage* at) noexcept {
  const auto is = at->is.load(k_relaxed);
  const auto back = is == PoolPage::State::body ? at->span.load(k_relaxed) : std::uint32_t{0};
  auto* first = at - back;
  return first->begins_run() && back < first->span.load(k_relaxed) ? first : nullptr;
}

static_assert(sizeof(PoolPage) == 16, "0.024 % of the memory it describes");

}  // namespace isthmus
