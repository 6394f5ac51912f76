// SPDX-License-Identifier: Apache-2.0
#include "memory/thread_cache.hpp"

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

constinit ThreadCache detail::no_thread_cache;
constinit bool detail::has_process_fence = false;
thread_local constinit ThreadCache* detail::last_thread_cache = &detail::no_thread_cache;

namespace {

// Guards which pool a thread cache (`lane`) belongs to, and the spare ones. Held while one is
// emptied, so that its pool is not destroyed meanwhile; never held during a driver call.
std::mutex& lanes_lock() noexcept {
  static NeverDestroyed<std::mutex> only;
  return *only;
}
ThreadCache* spare_lanes = nullptr;

// Which threads use which shard of the central lists. Guarded by `lanes_lock()`.
class ShardNumbers {
 public:
  // Returns a shard that the fewest threads use.
  [[nodiscard]] unsigned join() noexcept {
    const auto least = std::ranges::min_element(threads_);
    ++*least;
    return static_cast<unsigned>(least - threads_.begin());
  }
  void leave(unsigned shard) noexcept { --threads_[shard]; }

 private:
  std::array<std::uint32_t, CentralLists::k_shards> threads_{};
};
ShardNumbers shards;

void attach(ThreadCache& mine, Pool& pool, Queue* key, QueueSlots::Slot slot,
            std::uint32_t share) noexcept {
  mine.slot = slot;
  pool.slots().attach_lane(slot);
  mine.behind = key;
  mine.queue_key = key != nullptr ? key->key() : 0;
  mine.before = nullptr;
  mine.next = pool.lanes();
  if (mine.next != nullptr) {
    mine.next->before = &mine;
  }
  pool.set_thread_caches(&mine);
  pool.lay_out(mine, share);
  mine.owner.store(&pool, k_relaxed);
}

void detach(ThreadCache& mine) noexcept {
  auto& from = *mine.owner.load(k_relaxed);
  from.empty(mine);
  from.slots().detach_lane(mine.slot);
  if (mine.before != nullptr) {
    mine.before->next = mine.next;
  } else {
    from.set_thread_caches(mine.next);
  }
  if (mine.next != nullptr) {
    mine.next->before = mine.before;
  }
  mine.owner.store(nullptr, k_relaxed);
}

// Whether its queue can no longer be used: only pools still reference it.
bool is_dead(const ThreadCache& lane) noexcept {
  return lane.behind != nullptr && lane.behind->known_to_pools_alone();
}

ThreadCache* new_lane() noexcept {
  [[maybe_unused]] static const bool known = detail::has_process_fence = os::arm_process_fence();
  if (auto* spare = spare_lanes; spare != nullptr) {
    spare_lanes = spare->next;
    return spare;
  }
  auto pages = os::map_sparse_pages(sizeof(ThreadCache));
  return pages ? new (*pages) ThreadCache : nullptr;
}

// The thread caches of one thread, hashed by pool and queue into sets, so that a search takes as
// long among a hundred as among two. The most recently used one of a set comes first.
class ThreadCaches {
 public:
  // Precondition: lanes_lock() is held.
  ThreadCaches() noexcept : shard_{shards.join()} {}

  [[nodiscard]] ThreadCache* find(Pool& pool, Queue* key) noexcept {
    const auto hashed = hash_of(hash_of(address(&pool)) ^ address(key));
    auto& set = sets_[hashed >> (64 - k_set_bits)];
    auto found = std::find_if(set.begin(), set.end(), [&](const Place& each) {
      return each.hashed == hashed && each.its != nullptr && each.its->serves(pool, key);
    });
    if (found == set.end()) {
      found = std::ranges::find_if(set, &Place::is_free);
      if (found == set.end()) {
        found = std::prev(found);  // the least recently used one is reused
      }
      if (!serve(found->its, pool, key)) {
        return nullptr;
      }
      found->hashed = hashed;
    }
    std::rotate(set.begin(), found, std::next(found));
    set.front().its->found_at = ++finds_;
    return set.front().its;
  }

  [[nodiscard]] std::size_t collect(const Pool& pool, std::span<ThreadCache*> out) noexcept {
    std::size_t found = 0;
    for_each([&](ThreadCache*& each) {
      if (each->owner.load(k_relaxed) == &pool) {
        out[found++] = each;
      }
    });
    return found;
  }

  [[nodiscard]] bool pays_to_empty(const Pool& pool, std::size_t grains) noexcept {
    unsettled_ += grains;
    return unsettled_ >= count(pool) && std::exchange(unsettled_, 0) != 0;
  }

  void empty(Pool& pool) noexcept {
    for_each([&](ThreadCache*& each) {
      if (each->owner.load(k_relaxed) == &pool) {
        const ThreadCache::Hold held{*each};
        if (held && each->owner.load(k_relaxed) == &pool) {
          pool.empty(*each);
        }
      }
    });
  }

  // Precondition: lanes_lock() is held.
  void give_up() noexcept {
    for_each([](ThreadCache*& each) {
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
  struct Place {
    std::uint64_t hashed = 0;  // hash it was last found by; most others are not accessed
    ThreadCache* its = nullptr;

    [[nodiscard]] bool is_free() const noexcept {
      return its == nullptr || its->owner.load(k_relaxed) == nullptr;
    }
  };
  using ThreadCacheSet = std::array<Place, 8>;

  [[nodiscard]] std::uint32_t count(const Pool& pool) noexcept {
    std::uint32_t found = 0;
    for_each([&](ThreadCache*& each) { found += each->owner.load(k_relaxed) == &pool ? 1U : 0U; });
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

  [[nodiscard]] bool serve(ThreadCache*& which, Pool& pool, Queue* key) noexcept {
    if (key != nullptr) {
      pool.make_room_for(*key);
    }
    const auto slot = pool.slots().find(key);
    if (slot == QueueSlots::k_quiet && key != nullptr) {
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
    attach(*which, pool, key, slot, 1 + count(pool) / k_lanes_before_sharing);
    return true;
  }

  // Takes one whose pool or queue is gone, so that there are only as many as were in use at once.
  [[nodiscard]] ThreadCache* take_idle() noexcept {
    ThreadCache* idle = nullptr;
    for_each([&](ThreadCache*& each) {
      if (idle == nullptr && (each->owner.load(k_relaxed) == nullptr || is_dead(*each))) {
        idle = std::exchange(each, nullptr);
      }
    });
    return idle;
  }

  const unsigned shard_;
  std::size_t unsettled_ = 0;  // pages
  std::uint64_t finds_ = 0;
  std::array<ThreadCacheSet, std::size_t{1} << k_set_bits> sets_{};
  static_assert(sizeof sets_ / sizeof(Place) == ThreadCache::k_most_own);
};

// On separate pages, since static thread-local storage is small.
struct MappedThreadCaches {
  ThreadCaches* its = nullptr;

  MappedThreadCaches() noexcept = default;
  MappedThreadCaches(const MappedThreadCaches&) = delete;
  MappedThreadCaches& operator=(const MappedThreadCaches&) = delete;
  ~MappedThreadCaches() {
    detail::last_thread_cache = &detail::no_thread_cache;
    if (its == nullptr || os::is_forked_child()) {
      return;  // threads that do not exist here may hold the locks
    }
    {
      const std::lock_guard hold{lanes_lock()};
      its->give_up();
    }
    os::unmap_pages(its, sizeof(ThreadCaches));
  }
};
ISTHMUS_TLS_MODEL thread_local constinit OwnedByThread<MappedThreadCaches> own_lanes;

ThreadCaches* find_own_lanes() noexcept {
  const auto* mine = own_lanes.find();
  return mine != nullptr ? mine->its : nullptr;
}

// Null if there is no memory, and when the thread is ending.
ThreadCaches* make_own_lanes() noexcept {
  auto* const mine = own_lanes.get();
  if (mine != nullptr && mine->its == nullptr) {
    if (auto pages = os::map_sparse_pages(sizeof(ThreadCaches))) {
      const std::lock_guard hold{lanes_lock()};
      mine->its = new (*pages) ThreadCaches;
    }
  }
  return mine != nullptr ? mine->its : nullptr;
}

}  // namespace

ThreadCache* ThreadCache::find(Pool& pool, Queue* key) noexcept {
  auto* const own = on_library_thread() ? nullptr : make_own_lanes();
  auto* const found = own != nullptr ? own->find(pool, key) : nullptr;
  if (found != nullptr) {
    detail::last_thread_cache = found;
  }
  return found;
}

void* ThreadCache::take_run(std::size_t nbytes, std::uintptr_t key, PoolPageTable& table) noexcept {
  const auto grains = pool_pages_for(nbytes);
  const Hold held{*this};
  for (std::size_t back = 0; held && back < k_runs; ++back) {
    auto& kept = runs[(newest - back) % k_runs];
    if (kept.count == grains) {
      return hand_out(kept, nbytes, key, table);
    }
  }
  return nullptr;
}

void* ThreadCache::take_block(unsigned size_class) noexcept {
  const Hold held{*this};
  auto& from = bins[size_class];
  return held && from.count != 0 ? from.blocks[--from.count] : nullptr;
}

std::size_t ThreadCache::keep_blocks(unsigned size_class, std::span<void* const> blocks) noexcept {
  const Hold held{*this};
  auto& to = bins[size_class];
  if (!held) {
    return 0;
  }
  const auto kept = std::min<std::size_t>(blocks.size(), to.most - to.count);
  std::copy_n(blocks.begin(), kept, to.blocks.begin() + to.count);
  to.count += static_cast<std::uint32_t>(kept);
  return kept;
}

std::size_t ThreadCache::next_refill(unsigned size_class) noexcept {
  const Hold held{*this};
  auto& of = bins[size_class];
  return held ? std::exchange(of.wanted, std::min(2 * of.wanted, of.most / 2)) : 1;
}

bool ThreadCache::pays_to_empty_own(const Pool& pool, std::size_t grains) noexcept {
  auto* const own = find_own_lanes();
  return own == nullptr || own->pays_to_empty(pool, grains);
}

void ThreadCache::empty_own(Pool& pool) noexcept {
  auto* const own = find_own_lanes();
  if (own != nullptr && !on_library_thread()) {
    own->empty(pool);
  }
}

std::size_t ThreadCache::find_own(const Pool& pool,
                                  std::span<ThreadCache*, k_most_own> out) noexcept {
  auto* const own = on_library_thread() ? nullptr : find_own_lanes();
  return own != nullptr ? own->collect(pool, out) : 0;
}

// Whether the owner used it since the last call.
bool ThreadCache::used_lately() noexcept {
  auto seen = Use::lately;
  return use_.compare_exchange_strong(seen, Use::none, std::memory_order_acq_rel) ||
         seen != Use::none;
}

// The wait is bounded: the owner may be preempted while it accesses its thread cache.
bool ThreadCache::is_at_rest(Revoked which) const noexcept {
  constexpr int k_most_looks = 100;
  auto seen = use_.load(std::memory_order_seq_cst);
  for (int looks = 0; which == Revoked::all && seen == Use::now && looks < k_most_looks; ++looks) {
    std::this_thread::yield();
    seen = use_.load(std::memory_order_seq_cst);
  }
  return which == Revoked::all ? seen != Use::now : seen == Use::none;
}

// Precondition: lanes_lock() is held.
template <class Choose>
void ThreadCache::empty_some(Pool& pool, Revoked which, Choose&& choose) noexcept {
  bool any = false;
  for (auto* each = pool.lanes(); each != nullptr; each = each->next) {
    if (choose(*each)) {
      each->is_being_revoked_.store(true, std::memory_order_seq_cst);
      any = true;
    }
  }
  // Without a fence the owner may be accessing its thread cache without being seen.
  const bool told_all = !any || !detail::has_process_fence || os::process_fence();
  for (auto *each = pool.lanes(), *after = each; any && each != nullptr; each = after) {
    after = each->next;
    if (each->is_being_revoked_.load(k_relaxed)) {
      if (told_all && each->is_at_rest(which)) {
        is_dead(*each) ? detach(*each) : pool.empty(*each);
      }
      each->is_being_revoked_.store(false, std::memory_order_release);
    }
  }
}

void ThreadCache::revoke(Pool& pool, Revoked which) noexcept {
  const std::lock_guard hold{lanes_lock()};
  empty_some(pool, which,
             [which](ThreadCache& each) { return which == Revoked::all || !each.used_lately(); });
}

void ThreadCache::detach_dead(Pool& pool) noexcept {
  const std::lock_guard hold{lanes_lock()};
  empty_some(pool, Revoked::all, [](ThreadCache& each) { return is_dead(each); });
}

void ThreadCache::detach_all(Pool& pool) noexcept {
  const std::lock_guard hold{lanes_lock()};
  while (pool.lanes() != nullptr) {
    detach(*pool.lanes());
  }
}

}  // namespace isthmus
