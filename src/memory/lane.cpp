#include "memory/lane.hpp"

#include <algorithm>
#include <mutex>
#include <thread>

#include "core/never_destroyed.hpp"
#include "core/threads.hpp"
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

// The lanes of one thread; the last used first.
class thread_lanes {
 public:
  thread_lanes() = default;
  thread_lanes(const thread_lanes&) = delete;
  thread_lanes& operator=(const thread_lanes&) = delete;
  ~thread_lanes() {
    thread_is_ending = true;
    detail::last_lane = &detail::no_lane;
    if (os::is_forked_child()) {
      return;  // threads that are no more may hold the locks
    }
    const std::lock_guard hold{lanes_lock()};
    for (auto* each : mine_) {
      if (each != nullptr) {
        if (each->owner.load(k_relaxed) != nullptr) {
          detach(*each);
        }
        each->next = spare_lanes;
        spare_lanes = each;
      }
    }
  }

  [[nodiscard]] lane* find(pool& of, queue* key) noexcept {
    auto found = std::find_if(mine_.begin(), mine_.end(), [&](const lane* each) {
      return each != nullptr && each->serves(of, key);
    });
    if (found == mine_.end()) {
      found = std::prev(found);  // the one not used for longest serves anew
      if (!serve(*found, of, key)) {
        return nullptr;
      }
    }
    std::rotate(mine_.begin(), found, std::next(found));
    return mine_.front();
  }

  void empty(pool& of) noexcept {
    for (auto* each : mine_) {
      if (each != nullptr && each->owner.load(k_relaxed) == &of) {
        if (const lane::hold held{*each}) {
          of.empty(*each);
        }
      }
    }
  }

 private:
  static bool serve(lane*& place, pool& of, queue* key) noexcept {
    const auto slot = of.slots().find(key);
    if (slot == queue_slots::k_quiet && key != nullptr) {
      return false;  // lent by now, or more queues in use than there are slots
    }
    const std::lock_guard hold{lanes_lock()};
    if (place == nullptr) {
      place = new_lane();
    } else if (place->owner.load(k_relaxed) != nullptr) {
      detach(*place);
    }
    if (place == nullptr) {
      return false;
    }
    attach(*place, of, key, slot);
    return true;
  }

  std::array<lane*, 16> mine_{};
};

thread_lanes& lanes_of_this_thread() noexcept {
  thread_local thread_lanes only;
  return only;
}

}  // namespace

lane* lane::find(pool& of, queue* key) noexcept {
  if (thread_is_ending || on_library_thread()) {
    return nullptr;
  }
  auto* found = lanes_of_this_thread().find(of, key);
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

void lane::empty_own(pool& of) noexcept {
  if (!thread_is_ending && !on_library_thread()) {
    lanes_of_this_thread().empty(of);
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
