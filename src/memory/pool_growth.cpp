// What a pool asks of the driver, and what it gives back.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "core/sizes.hpp"
#include "memory/other_pools.hpp"
#include "memory/pool.hpp"
#include "memory/reaper.hpp"
#include "memory/reclaimers.hpp"

namespace isthmus {
namespace {

// Whether free memory of a pool is being collected to decay: one flag for some pools each. While it
// is on its way from lanes and slabs to the heap no request finds it there, and a steady program
// would grow.
constinit std::array<std::atomic<int>, 64> collecting{};

std::atomic<int>& collecting_of(const pool& one) noexcept {
  return collecting[address(&one) / alignof(pool) % collecting.size()];
}

class collection {
 public:
  explicit collection(const pool& of) noexcept : count_{collecting_of(of)} {
    count_.fetch_add(1, std::memory_order_acq_rel);
  }
  collection(const collection&) = delete;
  collection& operator=(const collection&) = delete;
  ~collection() { count_.fetch_sub(1, std::memory_order_acq_rel); }

 private:
  std::atomic<int>& count_;
};

// A collection takes some 10 us. Growing instead is no error, so the wait is bounded: the thread
// that collects may be descheduled, or call a driver.
void let_collection_end(const pool& of) noexcept {
  constexpr auto k_longest = std::chrono::milliseconds{5};
  const auto& count = collecting_of(of);
  if (count.load(std::memory_order_acquire) == 0) {
    return;
  }
  const auto until = std::chrono::steady_clock::now() + k_longest;
  while (count.load(std::memory_order_acquire) != 0 && std::chrono::steady_clock::now() < until) {
    std::this_thread::yield();
  }
}

}  // namespace

// With what is free in the other pools of the budget, if that refused. Others may take what they
// gave back, so more than once; not for ever, as these may grow as fast as they give.
template <class Grow>
auto pool::with_siblings(std::size_t needed, Grow&& grow) -> decltype(grow()) {
  constexpr int k_most_turns = 4;
  auto* const shared = source_.shared();
  for (int turn = 1;; ++turn) {
    const auto refusals = shared == nullptr ? 0 : shared->refusals();
    auto grown = grow();
    if (!is_short(grown) || shared == nullptr || turn == k_most_turns ||
        shared->refusals() == refusals || !shared->make_room(*this, needed)) {
      return grown;
    }
  }
}

result<void> pool::begin_with(std::size_t nbytes) {
  const auto refusals = driver_refusals;
  const auto try_it = [&] {
    return with_siblings(nbytes, [&] { return regions_.grow_by(nbytes); });
  };
  auto begun = with_all_pools({where(), kind(), nbytes, this}, refusals, try_it, try_it());
  if (!begun && reclaimed_for(begun.failure(), refusals, where(), {kind(), nbytes}, nullptr)) {
    begun = try_it();
  }
  return !is_short(begun) ? begun
                          : fail(ISTHMUS_ERROR_OUT_OF_MEMORY, "{}. To do: {}",
                                 begun.failure().message(), source_.remedy(nbytes, 0));
}

result<region_heap::run> pool::grow(const wanted_run& wanted) {
  if (window_.is_on() && no_wait == 0) {
    let_collection_end(*this);
    if (const auto found = regions_.take(wanted.count, wanted.alignment, wanted.whom,
                                         region_heap::cut::sparing_idle);
        found.count != 0) {
      return found;
    }
  }
  decay();
  give_way(std::size_t{wanted.count} * k_grain_bytes);
  auto grown = regions_.grow(wanted.count, wanted.alignment, wanted.whom);
  if (window_.is_on()) {
    decaying_pools::only().wake(window_);
  }
  return grown;
}

result<region_heap::run> pool::grow_with_siblings(const wanted_run& wanted) {
  return with_siblings(std::size_t{wanted.count} * k_grain_bytes, [&] { return grow(wanted); });
}

// Where memory cannot move, as much goes back first of regions that are free and did not serve:
// recorded training held 1.5 times what it requested without this, and 1.05 times with it.
void pool::give_way(std::size_t needed) noexcept {
  const auto held = source_.counts().held_bytes();
  const auto soft = source_.how().soft_limit_bytes;
  if (held > soft - std::min(needed, soft)) {
    trim(soft - std::min(needed, soft));
  } else if (!source_.moves()) {
    regions_.make_way(source_.growth_for(needed));
  }
}

// What this thread keeps may be joined to what is free, and what waits for other queues may have
// been waited for long enough.
void pool::settle() noexcept {
  lane::empty_own(*this);
  settle_shared();
}

void pool::settle_shared() noexcept {
  slots_->fence();
  regions_.settle();
}

// What threads keep that have not used their lanes for a while is free for anybody. Not looked for
// at every growth: between two that are close, those of threads at work would seem unused.
bool pool::revoke_idle_lanes() noexcept {
  constexpr auto k_look_every = std::chrono::milliseconds{10};
  const auto now = std::chrono::steady_clock::now();
  auto due = next_look_.load(k_relaxed);
  if (now < due || !next_look_.compare_exchange_strong(due, now + k_look_every, k_relaxed)) {
    return false;  // another thread has just looked
  }
  lane::revoke(*this, lane::revoked::idle);
  return true;
}

// All that is free becomes free for anybody, but for what threads keep that are at work.
void pool::gather(lane::revoked which) noexcept {
  lane::empty_own(*this);
  lane::revoke(*this, which);
  for (unsigned each = 0; each < classes_.count(); ++each) {
    dissolve(central_.flush(each));
  }
  slots_->fence();
  regions_.settle();
}

std::size_t pool::trim(std::size_t keep) noexcept {
  start_letting_go();
  let_go_on_demand();
  const auto given_back = decay() + trim_free(keep);
  return std::max(given_back, source_.upstream().trim(keep));
}

std::size_t pool::trim_free(std::size_t keep) noexcept {
  gather(lane::revoked::all);
  return regions_.trim(keep);
}

std::size_t pool::decay(decay_window::clock::time_point now) noexcept {
  if (!window_.is_on() || !window_.turn(now)) {
    return 0;
  }
  const collection until_it_is_free{*this};
  gather(lane::revoked::idle);
  const auto held = source_.counts().held_bytes();
  return regions_.trim(held - std::min(held, regions_.least_free_bytes()));
}

}  // namespace isthmus
