#include "memory/lane.hpp"

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>

#include "core/hash.hpp"
#include "core/never_destroyed.hpp"
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

// Guards which lane is of which pool, and the spare lanes. Held while a lane is emptied, so that
// its pool does not go meanwhile; never over a call of the driver.
std::mutex& lanes_lock() noexcept {
  static never_destroyed<std::mutex> only;
  return *only;
}
lane* spare_lanes = nullptr;

void attach(lane& mine, pool& to, const queue* key, queue_slots::slot slot) noexcept {
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
  to.lay_out(mine);
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

lane* new_lane() noexcept {
  [[maybe_unused]] static const bool known = detail::has_process_fence = os::arm_process_fence();
  if (auto* spare = spare_lanes; spare != nullptr) {
    spare_lanes = spare->next;
    return spare;
  }
  auto pages = os::map_sparse_pages(sizeof(lane));
  return pages ? new (*pages) lane : nullptr;
}

thread_local constinit bool thread_is_ending = false;

// The lanes of one thread, in sets by pool and queue, so that one is found as soon among a hundred
// as among two; of a set the one used last is first.
class thread_lanes {
 public:
  [[nodiscard]] lane* find(pool& of, queue* key) noexcept {
    const auto hashed = hash_of(hash_of(address(&of)) ^ address(key));
    auto& set = sets_[hashed >> (64 - k_set_bits)];
    auto found = std::find_if(set.begin(), set.end(), [&](const place& each) {
      return each.hashed == hashed && each.its != nullptr && each.its->serves(of, key);
    });
    if (found == set.end()) {
      found = std::prev(found);  // the one not used for longest serves anew
      if (!serve(found->its, of, key)) {
        return nullptr;
      }
      found->hashed = hashed;
    }
    std::rotate(set.begin(), found, std::next(found));
    return set.front().its;
  }

  [[nodiscard]] std::size_t count(const pool& of) noexcept {
    std::size_t found = 0;
    for_each([&](lane*& each) { found += each->owner.load(k_relaxed) == &of ? 1U : 0U; });
    return found;
  }

  void empty(pool& of) noexcept {
    for_each([&](lane*& each) {
      if (each->owner.load(k_relaxed) == &of) {
        if (const lane::hold held{*each}) {
          of.empty(*each);
        }
      }
    });
  }

  // Pre: lanes_lock() is held.
  void give_up() noexcept {
    for_each([](lane*& each) {
      if (each->owner.load(k_relaxed) != nullptr) {
        detach(*each);
      }
      each->next = spare_lanes;
      spare_lanes = each;
    });
  }

 private:
  static constexpr unsigned k_set_bits = 6;
  struct place {
    std::uint64_t hashed = 0;  // what the lane was found by last, so that few lanes are looked at
    lane* its = nullptr;
  };
  using lane_set = std::array<place, 8>;

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
    const auto slot = of.slots().find(key);
    if (slot == queue_slots::k_quiet && key != nullptr) {
      return false;  // lent by now, or more queues in use than there are slots
    }
    const std::lock_guard hold{lanes_lock()};
    if (which == nullptr) {
      which = take_idle();
    }
    if (which == nullptr) {
      which = new_lane();
    } else if (which->owner.load(k_relaxed) != nullptr) {
      detach(*which);
    }
    if (which == nullptr) {
      return false;
    }
    attach(*which, of, key, slot);
    return true;
  }

  // One whose pool has gone, so that lanes are as many as were in use at once.
  [[nodiscard]] lane* take_idle() noexcept {
    lane* idle = nullptr;
    for_each([&](lane*& each) {
      if (idle == nullptr && each->owner.load(k_relaxed) == nullptr) {
        idle = std::exchange(each, nullptr);
      }
    });
    return idle;
  }

  std::array<lane_set, std::size_t{1} << k_set_bits> sets_{};
};

ISTHMUS_TLS_MODEL thread_local constinit thread_lanes* own_lanes = nullptr;

// Gives up the lanes of a thread when that ends.
struct lanes_end {
  lanes_end() = default;
  lanes_end(const lanes_end&) = delete;
  lanes_end& operator=(const lanes_end&) = delete;
  ~lanes_end() {
    thread_is_ending = true;
    detail::last_lane = &detail::no_lane;
    if (os::is_forked_child()) {
      return;  // threads that are no more may hold the locks
    }
    {
      const std::lock_guard hold{lanes_lock()};
      own_lanes->give_up();
    }
    os::unmap_pages(std::exchange(own_lanes, nullptr), sizeof(thread_lanes));
  }
};

// Null without memory.
thread_lanes* lanes_of_this_thread() noexcept {
  if (own_lanes == nullptr) {
    auto pages = os::map_sparse_pages(sizeof(thread_lanes));
    if (!pages) {
      return nullptr;
    }
    own_lanes = new (*pages) thread_lanes;
    [[maybe_unused]] static thread_local lanes_end at_the_end;
  }
  return own_lanes;
}

}  // namespace

lane* lane::find(pool& of, queue* key) noexcept {
  if (thread_is_ending || on_library_thread()) {
    return nullptr;
  }
  auto* const own = lanes_of_this_thread();
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

void lane::bin::lay_out(std::uint32_t room) noexcept {
  most = room;
  wanted = std::max(room / 16, 1U);
}

std::size_t lane::count_own(const pool& of) noexcept {
  return own_lanes != nullptr ? own_lanes->count(of) : 0;
}

void lane::empty_own(pool& of) noexcept {
  if (own_lanes != nullptr && !on_library_thread()) {
    own_lanes->empty(of);
  }
}

// Whether its thread was at it since this was asked last.
bool lane::used_lately() noexcept {
  auto seen = use::lately;
  return use_.compare_exchange_strong(seen, use::none, std::memory_order_acq_rel) ||
         seen != use::none;
}

// Not for ever: a thread may lose its processor while it is at its lane.
bool lane::is_at_rest(revoked which) const noexcept {
  constexpr int k_most_looks = 100;
  auto seen = use_.load(std::memory_order_seq_cst);
  for (int looks = 0; which == revoked::all && seen == use::now && looks < k_most_looks; ++looks) {
    std::this_thread::yield();
    seen = use_.load(std::memory_order_seq_cst);
  }
  return which == revoked::all ? seen != use::now : seen == use::none;
}

void lane::revoke(pool& of, revoked which) noexcept {
  const std::lock_guard hold{lanes_lock()};
  bool any = false;
  for (auto* each = of.lanes(); each != nullptr; each = each->next) {
    if (which == revoked::all || !each->used_lately()) {
      each->is_being_revoked_.store(true, std::memory_order_seq_cst);
      any = true;
    }
  }
  // Without it a thread may be at its lane, and not seen there.
  const bool told_all = !any || !detail::has_process_fence || os::process_fence();
  for (auto* each = of.lanes(); any && each != nullptr; each = each->next) {
    if (each->is_being_revoked_.load(k_relaxed)) {
      if (told_all && each->is_at_rest(which)) {
        of.empty(*each);
      }
      each->is_being_revoked_.store(false, std::memory_order_release);
    }
  }
}

void lane::detach_all(pool& from) noexcept {
  const std::lock_guard hold{lanes_lock()};
  while (from.lanes() != nullptr) {
    detach(*from.lanes());
  }
}

}  // namespace isthmus
