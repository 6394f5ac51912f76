#pragma once
// The record of one grain, 64 KiB of a pool's address space: what lies there.
//
// A pool keeps its grains' records in one table, so that neighbours in memory are neighbours in the
// table; regions are kept apart by a record that is never free. Written under the lock of the run
// heap, but for what a run's or block's owner changes: `live`, `recorded` and `cached`, and `slab`
// to `slab_recorded`. Read at any time, by whoever has an address.

#include <atomic>
#include <cstdint>

namespace isthmus {

struct slab;

inline constexpr auto k_relaxed = std::memory_order_relaxed;

struct grain {
  enum class state : std::uint8_t {
    none,           // of no region, or inside a free run
    free_head,      // first of a free run
    free_last,      // last of a free run of more than one
    live,           // first of a run that a caller has
    recorded,       // the same, and it has an allocation record
    cached,         // first of a run that a lane keeps for the next caller
    body,           // of such a run, not its first
    slab,           // of a slab
    slab_recorded,  // and a block that begins in it has, or had, an allocation record
  };

  static constexpr std::uint64_t k_is_list = std::uint64_t{1} << 63;  // of `link`; of no address

  std::atomic<state> is{state::none};
  // A first: grains of the run. body, free_last: grains back to the first. slab: its size class.
  std::atomic<std::uint32_t> span{0};
  // free_head: the runs before and behind it in its list. slab: its address.
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
    return now == state::slab || now == state::slab_recorded;
  }
  // Of a run that is not free.
  [[nodiscard]] bool begins_run() const noexcept {
    const auto now = is.load(k_relaxed);
    return now == state::live || now == state::recorded || now == state::cached;
  }
  // The first of one that a caller has.
  [[nodiscard]] bool is_live_run() const noexcept {
    const auto now = is.load(k_relaxed);
    return now == state::live || now == state::recorded;
  }
  [[nodiscard]] bool is_recorded() const noexcept {
    const auto now = is.load(k_relaxed);
    return now == state::recorded || now == state::slab_recorded;
  }
  // Pre: live, or of a slab.
  void mark_recorded() noexcept {
    is.store(is_slab() ? state::slab_recorded : state::recorded, k_relaxed);
  }
  // Null if it is of none, by now: who looks a stale pointer up may come late. Who has no block of
  // it reads its record by acquire.
  [[nodiscard]] slab* in_slab(std::memory_order order = k_relaxed) const noexcept {
    const auto at = link.load(order);
    return (at & k_is_list) != 0 ? nullptr : reinterpret_cast<slab*>(at);
  }
  void set_slab(slab& owner, std::uint32_t size_class) noexcept {
    is.store(state::none, k_relaxed);  // till all of it is told
    span.store(size_class, k_relaxed);
    link.store(reinterpret_cast<std::uintptr_t>(&owner), std::memory_order_release);
    is.store(state::slab, k_relaxed);
  }
};

// The first grain of the run, not a free one, that holds this one; null if none does. What an
// earlier run left behind is told by the span of the run that is there now.
[[nodiscard]] inline grain* first_of_run(grain* at) noexcept {
  const auto is = at->is.load(k_relaxed);
  const auto back = is == grain::state::body ? at->span.load(k_relaxed) : std::uint32_t{0};
  auto* first = at - back;
  return first->begins_run() && back < first->span.load(k_relaxed) ? first : nullptr;
}

static_assert(sizeof(grain) == 16, "0.024 % of the memory it describes");

}  // namespace isthmus
