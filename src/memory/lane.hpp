#pragma once
// A lane: what one thread keeps of one pool for one queue, so that warm allocations and frees meet
// nobody. What lies in it was freed behind work on that queue, or nothing uses it.
//
// A thread finds its lane through one pointer, in the thread's static memory where it has any
// (core/tls.hpp: the general model costs 4.6 ns a pair), and searches its others where that one is
// of another pool. Lanes are never unmapped: that of a thread that has ended goes to the next new
// one, and that of a pool that has gone is empty and serves the thread's next pool.
//
// What a thread keeps and does not use would be lost to others, so lanes can be revoked: emptied by
// another thread. The owner says so while it is at its lane (`lane::hold`), by plain stores; the
// revoker pays for the fences of both (os/process_fence.hpp).

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "core/tls.hpp"
#include "memory/central_lists.hpp"
#include "memory/grain_table.hpp"
#include "memory/size_class.hpp"

namespace isthmus {

class pool;

class lane {
 public:
  // The last blocks of one size class that the thread freed, or got from the central list.
  struct bin {
    static constexpr std::uint32_t k_most = 2 * central_shard::k_most_in_batch;
    std::uint32_t count = 0;
    std::uint32_t most = 0;
    std::uint32_t wanted = 0;  // blocks of the next refill
    std::array<void*, k_most> blocks{};

    void begin_with_few() noexcept { wanted = std::max(most / 16, 1U); }
  };
  struct run {
    std::byte* base = nullptr;
    std::uint32_t first = 0;  // grain
    std::uint32_t count = 0;  // grains; 0: none
  };
  static constexpr std::size_t k_runs = 16;
  static constexpr std::size_t k_most_cached_grains = 1024;  // 64 MiB, or a single run

  // This thread's lane of `of` for a lane's key, made if need be; null where it cannot have one: no
  // memory or slot, or the thread is ending or of the library, which frees but does not allocate.
  [[nodiscard]] static lane* find(pool& of, queue* key) noexcept;
  // What this thread keeps of the pool goes to its central lists.
  static void empty_own(pool& of) noexcept;
  // Whether so many grains more, and what this thread asked of the pools since it was last told to,
  // make up for emptying all its lanes of this pool.
  [[nodiscard]] static bool pays_to_empty_own(const pool& of, std::size_t grains) noexcept;
  // The same for all threads, or for lanes not used since this was asked last: of a lane that its
  // thread is at all the time something may stay, and all where the kernel forbids the fence by
  // now.
  enum class revoked { idle, all };
  static void revoke(pool& of, revoked which) noexcept;
  // This thread's lanes of a pool; how many.
  static constexpr std::size_t k_most_own = 512;
  [[nodiscard]] static std::size_t find_own(const pool& of,
                                            std::span<lane*, k_most_own> out) noexcept;
  // The lanes of a pool that is going are empty from here on.
  static void detach_all(pool& from) noexcept;
  // The same of those whose queues only pools still know: they keep the queues, and their slots.
  static void detach_dead(pool& from) noexcept;

  class hold;

  // One of the blocks kept of a class; null if there is none.
  [[nodiscard]] void* take_block(unsigned size_class) noexcept;
  // How many blocks of a class to get: few at first, and twice as many each time until half a bin,
  // since who has many lanes and needs little of each shall not keep much.
  [[nodiscard]] std::size_t next_refill(unsigned size_class) noexcept;
  // As many as there is room for.
  [[nodiscard]] std::size_t keep_blocks(unsigned size_class,
                                        std::span<void* const> blocks) noexcept;
  // The newest of the runs kept that has the length of a request, live then; null if none has. For
  // the queue of that key: a lane of none serves several.
  [[nodiscard]] void* take_run(std::size_t nbytes, std::uintptr_t key, grain_table& table) noexcept;

  // The same of the run kept last only. Pre: held.
  [[nodiscard]] void* take_last_run(std::size_t nbytes, grain_table& table) noexcept;
  // Keeps a live run that begins there, if there is room; false if not, or if none begins there.
  // Pre: held.
  [[nodiscard]] bool keep_run(grain& first, std::byte* base, grain_table& table) noexcept;

  // Whether it is this pool's for that queue. Its slot keeps the queue, so that no other can be at
  // its address.
  [[nodiscard]] bool serves(const pool& of, const queue* on) const noexcept {
    return owner.load(k_relaxed) == &of && behind == on;
  }

 private:  // beside what is looked at with them
  enum class use : std::uint8_t { none, now, lately };
  std::atomic<use> use_{use::none};  // written by the thread; `lately` forgotten by others
  std::atomic<bool> is_being_revoked_{false};

 public:
  std::atomic<pool*> owner{nullptr};
  queue* behind = nullptr;       // the thread's own, as all below but the links
  std::uintptr_t queue_key = 0;  // of `behind`
  queue_slots::slot slot = queue_slots::k_quiet;
  unsigned shard = 0;          // the thread's, of the pool's central lists
  std::uint64_t found_at = 0;  // when its thread began to use it last: greater than before
  lane* next = nullptr;        // of the pool's lanes, or of the spare ones
  lane* before = nullptr;
  std::size_t cached_grains = 0;
  std::uint32_t newest = 0;
  std::array<run, k_runs> runs{};
  std::array<bin, size_classes::k_most> bins{};

 private:
  // To the next caller. Pre: it is kept.
  [[nodiscard]] void* hand_out(run& kept, std::size_t nbytes, std::uintptr_t key,
                               grain_table& table) noexcept;
  [[nodiscard]] bool used_lately() noexcept;
  [[nodiscard]] bool is_at_rest(revoked which) const noexcept;
  template <class Choose>
  static void empty_some(pool& of, revoked which, Choose&& choose) noexcept;
};

namespace detail {
// Never null: a lane of no pool at first.
extern constinit lane no_lane;
ISTHMUS_TLS_MODEL extern thread_local constinit lane* last_lane;
// Set before there is any lane.
extern constinit bool has_process_fence;
}  // namespace detail

// While it lives a thread is at its lane, if it may be: false while another revokes it, and then
// the lane is as good as none. Around what takes no lock but those of the pool's own lists.
class lane::hold {
 public:
  explicit hold(lane& own) noexcept : own_{own} {
    if (detail::has_process_fence) [[likely]] {
      own.use_.store(use::now, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      own.use_.exchange(use::now, std::memory_order_seq_cst);
    }
    may_ = !own.is_being_revoked_.load(std::memory_order_seq_cst);
  }
  ~hold() { own_.use_.store(use::lately, std::memory_order_release); }
  hold(const hold&) = delete;
  hold& operator=(const hold&) = delete;
  [[nodiscard]] explicit operator bool() const noexcept { return may_; }

 private:
  lane& own_;
  bool may_;
};

// 2**48 for 0 bytes.
[[nodiscard]] constexpr std::size_t grains_for(std::size_t nbytes) noexcept {
  return (nbytes - 1) / k_grain_bytes + 1;
}

inline void* lane::hand_out(run& kept, std::size_t nbytes, std::uintptr_t key,
                            grain_table& table) noexcept {
  table.origin_of(kept.first).set(nbytes, key);
  table[kept.first].is.store(grain::state::live, k_relaxed);
  cached_grains -= std::exchange(kept.count, 0);
  return kept.base;
}

inline void* lane::take_last_run(std::size_t nbytes, grain_table& table) noexcept {
  auto& last = runs[newest % k_runs];
  if (last.count == 0 || last.count != grains_for(nbytes)) {
    return nullptr;
  }
  --newest;
  return hand_out(last, nbytes, queue_key, table);
}

inline bool lane::keep_run(grain& first, std::byte* base, grain_table& table) noexcept {
  auto& place = runs[(newest + 1) % k_runs];
  const auto count = first.span.load(k_relaxed);
  auto expected = grain::state::live;
  if (place.count != 0 || address(base) % k_grain_bytes != 0 ||
      cached_grains + count > std::max<std::size_t>(k_most_cached_grains, count) ||
      !first.is.compare_exchange_strong(expected, grain::state::cached, k_relaxed)) {
    return false;
  }
  place = {base, table.number_of(&first), count};
  cached_grains += count;
  ++newest;
  return true;
}

// Which queue's lane: null stands for none and for all on which others' work may come before ours.
// Asked once in a call, since that may change meanwhile.
[[nodiscard]] inline queue* lane_key(queue* on) noexcept {
  return on == nullptr || !on->in_one_order() ? nullptr : on;
}

}  // namespace isthmus
