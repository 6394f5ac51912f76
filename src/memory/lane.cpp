// SPDX-License-Identifier: Apache-2.0
#include "memory/lane.hpp"

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>

#include "core/hash.hpp"
#include "core/never_destroyed.hpp"
#include "core/owned_by_thread.hpp"
#include "core/threads.hpp"
#include "core/tls.hpp"
#include "memory/pool.hpp"
#include "os/process.hpp"
#include "os/process_fence.hpp"
#include "os/virtual_memory.hpp"

namespace isthmus {

constinit lane detail::no_lane;
constinit bool detail::has_process_fence = false;
thread_local constinit lane* detail::last_lane = &detail::no_lane;

namespace {

// Guards which pool a thread cache (`lane`) belongs to, and the spare ones. Held while one is
// emptied, so that its pool is not destroyed meanwhile; never held during a driver call.
std::mutex& lanes_lock() noexcept {
  static never_destroyed<std::mutex> only;
  return *only;
}
lane* spare_lanes = nullptr;

// Which threads use which shard of the central lists. Guarded by `lanes_lock()`.
class shard_numbers {
 public:
  // Returns a shard that the fewest threads use.
  [[nodiscard]] unsigned join() noexcept {
    const auto least = std::ranges::min_element(threads_);
    ++*least;
    return static_cast<unsigned>(least - threads_.begin());
  }
  void leave(unsigned shard) noexcept { --threads_[shard]; }

 private:
  std::array<std::uint32_t, central_lists::k_shards> threads_{};
};
shard_numbers shards;

void attach(lane& mine, pool& to, queue* key, queue_slots::slot slot,
            std::uint32_t share) noexcept {
  mine.slot = slot;
  to.slots().attach_lane(slot);
  mine.behind = key;
  mine.queue_key = key != nullptr ? key->key() : 0;
  mine.before = nullptr;
  mine.next = to.lanes();
  if (mine.next != nullptr) {
    mine.next->before = &mine;
  }
  to.set_lanes(&mine);
  to.lay_out(mine, share);
  mine.owner.store(&to, k_relaxed);
}

void detach(lane& mine) noexcept {
  auto& from = *mine.owner.load(k_relaxed);
  from.empty(mine);
  from.slots().detach_lane(mine.slot);
  if (mine.before != nullptr) {
    mine.before->next = mine.next;
  } else {
    from.set_lanes(mine.next);
  }
  if (mine.next != nullptr) {
    mine.next->before = mine.before;
  }
  mine.owner.store(nullptr, k_relaxed);
}

// Whether its queue can no longer be used: only pools still reference it.
bool is_dead(const lane& of) noexcept {
  return of.behind != nullptr && of.behind->known_to_pools_alone();
}

lane* new_lane() noexcept {
  [[maybe_unused]] static const bool known = detail::has_process_fence = os::arm_process_fence();
  if (auto* spare = spare_lanes; spare != nullptr) {
    spare_lanes = spare->next;
    return spare;
  }
  auto pages = os::map_sparse_pages(sizeof(lane));
  return pages ? new (*pages) lane : nullptr;
}

// The thread caches of one thread, hashed by pool and queue into sets, so that a search takes as
// long among a hundred as among two. The most recently used one of a set comes first.
class thread_lanes {
 public:
  // Precondition: lanes_lock() is held.
  thread_lanes() noexcept : shard_{shards.join()} {}

  [[nodiscard]] lane* find(pool& of, queue* key) noexcept {
    const auto hashed = hash_of(hash_of(address(&of)) ^ address(key));
    auto& set = sets_[hashed >> (64 - k_set_bits)];
    auto found = std::find_if(set.begin(), set.end(), [&](const place& each) {
      return each.hashed == hashed && each.its != nullptr && each.its->serves(of, key);
    });
    if (found == set.end()) {
      found = std::ranges::find_if(set, &place::is_free);
      if (found == set.end()) {
        found = std::prev(found);  // the least recently used one is reused
      }
      if (!serve(found->its, of, key)) {
        return nullptr;
      }
      found->hashed = hashed;
    }
    std::rotate(set.begin(), found, std::next(found));
    set.front().its->found_at = ++finds_;
    return set.front().its;
  }

  [[nodiscard]] std::size_t collect(const pool& of, std::span<lane*> out) noexcept {
    std::size_t found = 0;
    for_each([&](lane*& each) {
      if (each->owner.load(k_relaxed) == &of) {
        out[found++] = each;
      }
    });
    return found;
  }

  [[nodiscard]] bool pays_to_empty(const pool& of, std::size_t grains) noexcept {
    unsettled_ += grains;
    return unsettled_ >= count(of) && std::exchange(unsettled_, 0) != 0;
  }

  void empty(pool& of) noexcept {
    for_each([&](lane*& each) {
      if (each->owner.load(k_relaxed) == &of) {
        const lane::hold held{*each};
        if (held && each->owner.load(k_relaxed) == &of) {
          of.empty(*each);
        }
      }
    });
  }

  // Precondition: lanes_lock() is held.
  void give_up() noexcept {
    for_each([](lane*& each) {
      if (each->owner.load(k_relaxed) != nullptr) {
        detach(*each);
      }
      each->next = spare_lanes;
      spare_lanes = each;
    });
    shards.leave(shard_);
  }

 private:
  static constexpr unsigned k_set_bits = 6;
  static constexpr std::uint32_t k_lanes_before_sharing = 16;  // of one pool
  struct place {
    std::uint64_t hashed = 0;  // hash it was last found by; most others are not accessed
    lane* its = nullptr;

    [[nodiscard]] bool is_free() const noexcept {
      return its == nullptr || its->owner.load(k_relaxed) == nullptr;
    }
  };
  using lane_set = std::array<place, 8>;

  [[nodiscard]] std::uint32_t count(const pool& of) noexcept {
    std::uint32_t found = 0;
    for_each([&](lane*& each) { found += each->owner.load(k_relaxed) == &of ? 1U : 0U; });
    return found;
  }

  template <class Visit>
  void for_each(Visit&& visit) noexcept {
    for (auto& set : sets_) {
      for (auto& [hashed, each] : set) {
        if (each != nullptr) {
          visit(each);
        }
      }
    }
  }

  [[nodiscard]] bool serve(lane*& which, pool& of, queue* key) noexcept {
    if (key != nullptr) {
      of.make_room_for(*key);
    }
    const auto slot = of.slots().find(key);
    if (slot == queue_slots::k_quiet && key != nullptr) {
      return false;  // no longer in one order, or no free entry is left
    }
    const std::lock_guard hold{lanes_lock()};
    if (which == nullptr) {
      which = take_idle();
    }
    if (which == nullptr) {
      which = new_lane();
    }
    if (which == nullptr) {
      return false;
    }
    if (which->owner.load(k_relaxed) != nullptr) {
      detach(*which);
    }
    which->shard = shard_;
    attach(*which, of, key, slot, 1 + count(of) / k_lanes_before_sharing);
    return true;
  }

  // Takes one whose pool or queue is gone, so that there are only as many as were in use at once.
  [[nodiscard]] lane* take_idle() noexcept {
    lane* idle = nullptr;
    for_each([&](lane*& each) {
      if (idle == nullptr && (each->owner.load(k_relaxed) == nullptr || is_dead(*each))) {
        idle = std::exchange(each, nullptr);
      }
    });
    return idle;
  }

  const unsigned shard_;
  std::size_t unsettled_ = 0;  // pages
  std::uint64_t finds_ = 0;
  std::array<lane_set, std::size_t{1} << k_set_bits> sets_{};
  static_assert(sizeof sets_ / sizeof(place) == lane::k_most_own);
};

// On separate pages, since static thread-local storage is small.
struct mapped_lanes {
  thread_lanes* its = nullptr;

  mapped_lanes() noexcept = default;
  mapped_lanes(const mapped_lanes&) = delete;
  mapped_lanes& operator=(const mapped_lanes&) = delete;
  ~mapped_lanes() {
    detail::last_lane = &detail::no_lane;
    if (its == nullptr || os::is_forked_child()) {
      return;  // threads that do not exist here may hold the locks
    }
    {
      const std::lock_guard hold{lanes_lock()};
      its->give_up();
    }
    os::unmap_pages(its, sizeof(thread_lanes));
  }
};
ISTHMUS_TLS_MODEL thread_local constinit owned_by_thread<mapped_lanes> own_lanes;

thread_lanes* find_own_lanes() noexcept {
  const auto* mine = own_lanes.find();
  return mine != nullptr ? mine->its : nullptr;
}

// Null if there is no memory, and when the thread is ending.
thread_lanes* make_own_lanes() noexcept {
  auto* const mine = own_lanes.get();
  if (mine != nullptr && mine->its == nullptr) {
    if (auto pages = os::map_sparse_pages(sizeof(thread_lanes))) {
      const std::lock_guard hold{lanes_lock()};
      mine->its = new (*pages) thread_lanes;
    }
  }
  return mine != nullptr ? mine->its : nullptr;
}

}  // namespace

lane* lane::find(pool& of, queue* key) noexcept {
  auto* const own = on_library_thread() ? nullptr : make_own_lanes();
  auto* const found = own != nullptr ? own->find(of, key) : nullptr;
  if (found != nullptr) {
    detail::last_lane = found;
  }
  return found;
}

void* lane::take_run(std::size_t nbytes, std::uintptr_t key, grain_table& table) noexcept {
  const auto grains = grains_for(nbytes);
  const hold held{*this};
  for (std::size_t back = 0; held && back < k_runs; ++back) {
    auto& kept = runs[(newest - back) % k_runs];
    if (kept.count == grains) {
      return hand_out(kept, nbytes, key, table);
    }
  }
  return nullptr;
}

void* lane::take_block(unsigned size_class) noexcept {
  const hold held{*this};
  auto& from = bins[size_class];
  return held && from.count != 0 ? from.blocks[--from.count] : nullptr;
}

std::size_t lane::keep_blocks(unsigned size_class, std::span<void* const> blocks) noexcept {
  const hold held{*this};
  auto& to = bins[size_class];
  if (!held) {
    return 0;
  }
  const auto kept = std::min<std::size_t>(blocks.size(), to.most - to.count);
  std::copy_n(blocks.begin(), kept, to.blocks.begin() + to.count);
  to.count += static_cast<std::uint32_t>(kept);
  return kept;
}

std::size_t lane::next_refill(unsigned size_class) noexcept {
  const hold held{*this};
  auto& of = bins[size_class];
  return held ? std::exchange(of.wanted, std::min(2 * of.wanted, of.most / 2)) : 1;
}

bool lane::pays_to_empty_own(const pool& of, std::size_t grains) noexcept {
  auto* const own = find_own_lanes();
  return own == nullptr || own->pays_to_empty(of, grains);
}

void lane::empty_own(pool& of) noexcept {
  auto* const own = find_own_lanes();
  if (own != nullptr && !on_library_thread()) {
    own->empty(of);
  }
}

std::size_t lane::find_own(const pool& of, std::span<lane*, k_most_own> out) noexcept {
  auto* const own = on_library_thread() ? nullptr : find_own_lanes();
  return own != nullptr ? own->collect(of, out) : 0;
}

// Whether the owner used it since the last call.
bool lane::used_lately() noexcept {
  auto seen = use::lately;
  return use_.compare_exchange_strong(seen, use::none, std::memory_order_acq_rel) ||
         seen != use::none;
}

// The wait is bounded: the owner may be preempted while it accesses its thread cache.
bool lane::is_at_rest(revoked which) const noexcept {
  constexpr int k_most_looks = 100;
  auto seen = use_.load(std::memory_order_seq_cst);
  for (int looks = 0; which == revoked::all && seen == use::now && looks < k_most_looks; ++looks) {
    std::this_thread::yield();
    seen = use_.load(std::memory_order_seq_cst);
  }
  return which == revoked::all ? seen != use::now : seen == use::none;
}

// Precondition: lanes_lock() is held.
template <class Choose>
void lane::empty_some(pool& of, revoked which, Choose&& choose) noexcept {
  bool any = false;
  for (auto* each = of.lanes(); each != nullptr; each = each->next) {
    if (choose(*each)) {
      each->is_being_revoked_.store(true, std::memory_order_seq_cst);
      any = true;
    }
  }
  // Without a fence the owner may be accessing its thread cache without being seen.
  const bool told_all = !any || !detail::has_process_fence || os::process_fence();
  for (auto *each = of.lanes(), *after = each; any && each != nullptr; each = after) {
    after = each->next;
    if (each->is_being_revoked_.load(k_relaxed)) {
      if (told_all && each->is_at_rest(which)) {
        is_dead(*each) ? detach(*each) : of.empty(*each);
      }
      each->is_being_revoked_.store(false, std::memory_order_release);
    }
  }
}

void lane::revoke(pool& of, revoked which) noexcept {
  const std::lock_guard hold{lanes_lock()};
  empty_some(of, which,
             [which](lane& each) { return which == revoked::all || !each.used_lately(); });
}

void lane::detach_dead(pool& from) noexcept {
  const std::lock_guard hold{lanes_lock()};
  empty_some(from, revoked::all, [](lane& each) { return is_dead(each); });
}

void lane::detach_all(pool& from) noexcept {
  const std::lock_guard hold{lanes_lock()};
  while (from.lanes() != nullptr) {
    detach(*from.lanes());
  }
}

}  // namespace isthmus
