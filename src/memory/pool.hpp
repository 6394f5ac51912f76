#pragma once
// The pool: a memory resource that keeps what is freed for what comes next.
//
// Choose it for everything that allocates more than once: a warm allocation and its free take some
// ten nanoseconds, whatever the driver's take. Requests up to 256 KiB come from slabs of their size
// class by way of the thread's lane; larger ones are runs of grains, of which a lane keeps the last
// few. All metadata is on the host, beside the memory. Safe for threads.
//
// A free never allocates or fails, and calls a driver only for a lent queue, whose fence it
// submits. What is freed behind work on a queue is good there at once, and elsewhere when that work
// has ended (queue_slots.hpp). Memory goes back to the driver by `trim`, where the pool finds none
// when it has to grow, where another pool of its budget does, by decay, and with the pool. Where it
// can move, what is free becomes one (region_heap.hpp).

#include <array>
#include <atomic>
#include <chrono>
#include <mutex>

#include "memory/decay.hpp"
#include "memory/lane.hpp"
#include "memory/late_memory.hpp"
#include "memory/pooled.hpp"
#include "memory/pressure.hpp"
#include "memory/reaper.hpp"
#include "memory/region_heap.hpp"

namespace isthmus {

class pool final : public memory_resource, public reclaimable {
 public:
  struct options {
    std::size_t growth_bytes = 0;        // asked of the driver at a time, at least; 0: by itself
    std::size_t initial_bytes = 0;       // asked at once
    std::size_t limit_bytes = SIZE_MAX;  // of the driver's, never more
    bool checks = true;                  // finds frees of what is no block or was freed; some 3 ns
    bool remaps = true;  // moves free memory to where it is needed, if the driver can
    // Beyond it all that is free goes back before the driver is asked for what is needed.
    std::size_t soft_limit_bytes = SIZE_MAX;
    ref<budget> shared = {};  // what it holds together with other pools
    // That its memory comes from, of the same context, device and kind; null: from the driver.
    ref<memory_resource> upstream = {};
    // Memory that nobody needed for so long goes back (decay.hpp); 0: never.
    std::chrono::nanoseconds decay{0};
    std::chrono::nanoseconds longest_wait = std::chrono::seconds{1};  // before there is no memory
    bool device_wait = false;  // a request's queue waits for others' work rather than the host
    // Counts what the driver gave; null: nothing does, as default pools count blocks instead.
    live_counts* live = &process_live_counts();
  };

  [[nodiscard]] static result<ref<pool>> create(context& home, device& where, usm_kind kind,
                                                const options& how);
  // For `create`.
  pool(context& home, device& where, usm_kind kind, const options& how);

  [[nodiscard]] result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       queue& on) override;
  // The same where this thread's lane has it: null, or false, where it takes more, as for whatever
  // is an error. Pre: not in a forked child.
  [[nodiscard]] void* allocate_warm(std::size_t nbytes, std::size_t alignment,
                                    queue* on) noexcept override;
  [[nodiscard]] bool deallocate_warm(void* pointer, std::size_t nbytes,
                                     queue* on) noexcept override;
  // INVALID_ARGUMENT for what is no block of this pool's, lies inside one, or was freed.
  result<void> deallocate(void* pointer, std::size_t nbytes, queue* on) noexcept override;

  // The same for a block whose record has let it go: nobody looks for one.
  void take_in(void* pointer, queue* on) noexcept;

  // The same in two steps, for a block of a slab: after the first it is no longer live but still
  // the caller's; the second has it for the next. `in`: the record of its grain.
  void end_block(grain& in, void* pointer) noexcept {
    if (checks_) {
      auto& owner = *in.in_slab();
      owner.mark_ended(owner.number_of(pointer));
    }
  }
  void take_in_ended(grain& in, void* pointer, queue* on) noexcept {
    put_in_lane(in.span.load(k_relaxed), pointer, on);
  }

  // Whether any block was freed behind a queue while work there may have used it: by its pointer,
  // of whose work the library does not know, or with work that it knows.
  [[nodiscard]] bool frees_behind_work() const noexcept {
    return frees_behind_work_.load(k_relaxed);
  }
  // Written once: it lies beside what every thread reads.
  void note_free_behind_work() noexcept {
    if (!frees_behind_work_.load(k_relaxed)) [[unlikely]] {
      frees_behind_work_.store(true, k_relaxed);
    }
  }

  // Bytes of its blocks that went to the reaper, less those that came back from it, or of which
  // nobody knows when they do.
  void count_late(std::int64_t nbytes) noexcept {
    late_.bytes.fetch_add(nbytes, std::memory_order_relaxed);
  }

  // The record of a block that was handed out without one. Errors as `context::create_queue`.
  [[nodiscard]] result<ref<allocation>> record(const pooled_block& of);

  [[nodiscard]] memory_usage usage() noexcept override;
  // As `region_heap::trim`; the lanes of all threads are emptied first. What decayed goes back
  // beyond `keep` too.
  std::size_t trim(std::size_t keep) noexcept override;
  // The same, of its own memory alone: no other resource is called, and nothing is released that
  // waits for its end.
  std::size_t trim_free(std::size_t keep) noexcept;
  // To trim it calls no other resource then, either.
  [[nodiscard]] bool is_drivers_own() const noexcept override {
    return !source_.upstream().is_there();
  }
  [[nodiscard]] result<void> verify() override;
  // What nobody needed in the window that has ended; bytes given back.
  std::size_t decay(decay_window::clock::time_point now = decay_window::clock::now()) noexcept;
  [[nodiscard]] const decay_window& window() const noexcept { return window_; }
  [[nodiscard]] snapshot count() const { return regions_.count(nullptr).seen; }
  // The same with the largest request, as seen from this thread.
  [[nodiscard]] snapshot count_with_largest_request() const noexcept;
  // As `region_heap::since`.
  [[nodiscard]] std::uint64_t since(const grain& of) const noexcept { return regions_.since(of); }
  [[nodiscard]] const pressure& under_pressure() const noexcept { return pressure_; }

  // For lanes; under their lock.
  [[nodiscard]] queue_slots& slots() noexcept { return *slots_; }
  [[nodiscard]] lane* lanes() const noexcept { return lanes_; }
  void set_lanes(lane* first) noexcept { lanes_ = first; }
  // Its bins have room for one part in `share` of what those of an only lane have.
  void lay_out(lane& mine, std::uint32_t share) const noexcept;
  // Where a pool knows as many queues as it can, lanes let go of those that have gone.
  void make_room_for(queue& on) noexcept;
  void empty(lane& mine) noexcept;

 private:
  ~pool() override;
  void last_reference_gone() noexcept override;
  void let_go() noexcept override;

  // Of a thread without a lane, too.
  [[nodiscard]] static unsigned shard_of(const lane* own) noexcept {
    return own != nullptr ? own->shard : 0;
  }
  [[nodiscard]] lane* lane_for(queue* key) noexcept {
    auto* last = detail::last_lane;
    return last->serves(*this, key) ? last : lane::find(*this, key);
  }
  // To whom allocated it, from whom freed it: in builds with a sanitizer (free_poison.hpp). Whether
  // work is still on it is not asked of the driver.
  [[nodiscard]] void* opened(void* block, std::size_t nbytes) const noexcept {
    source_.poison().lift(block, nbytes);
    return block;
  }
  void shut(const void* block, std::size_t nbytes, queue* on) const noexcept {
    if (source_.poison().is_on() && (on == nullptr || on->quiet())) {
      source_.poison().put(block, nbytes);
    }
  }
  // Null where a free needs a fence of its own.
  [[nodiscard]] lane* lane_behind(queue* on) noexcept {
    auto* key = lane_key(on);
    return on != nullptr && key == nullptr ? nullptr : lane_for(key);
  }
  [[nodiscard]] result<void*> allocate_block(unsigned size_class, queue* on);
  [[nodiscard]] result<void*> allocate_run(std::size_t nbytes, std::size_t alignment, queue* on);
  // At least one block, at most as many as `out` has room for.
  [[nodiscard]] result<std::size_t> refill(unsigned size_class, std::span<void*> out, queue* on,
                                           unsigned shard);
  void keep(unsigned size_class, std::span<void* const> blocks, queue* on, queue* key) noexcept;
  [[nodiscard]] result<std::size_t> add_slab(unsigned size_class, std::span<void*> out, queue* on,
                                             unsigned shard);
  [[nodiscard]] slab_shape next_slab(unsigned size_class) const noexcept;
  [[nodiscard]] std::size_t largest_block(const own_caches& mine,
                                          const region_heap::counted& runs) const noexcept;
  // Whether a slab more than need be is nothing beside what is held.
  [[nodiscard]] bool can_spare_slab(unsigned size_class) const noexcept;
  // Of what is free now, without growing; 0 if there is no run for it.
  [[nodiscard]] std::size_t add_slab_at_hand(unsigned size_class, std::span<void*> out, queue* on,
                                             unsigned shard);
  [[nodiscard]] result<std::size_t> cut(unsigned size_class, const slab_shape& shape,
                                        const region_heap::run& run, std::span<void*> out,
                                        unsigned shard);
  static constexpr std::size_t k_part_to_spare = 64;
  class ladder;

  struct wanted_run {
    std::size_t nbytes;        // that were asked for
    region_heap::index count;  // grains
    region_heap::index least;  // that serve where there are no more
    std::size_t alignment;
    queue_slots::slot whom;
  };
  [[nodiscard]] result<region_heap::run> grow(const wanted_run& wanted);
  [[nodiscard]] result<void> begin_with(std::size_t nbytes);
  void give_way(std::size_t needed) noexcept;
  template <class Grow>
  [[nodiscard]] auto with_siblings(std::size_t needed, Grow&& grow) -> decltype(grow());
  [[nodiscard]] result<region_heap::run> grow_with_siblings(const wanted_run& wanted);
  void settle() noexcept;
  void settle_shared() noexcept;
  [[nodiscard]] bool revoke_idle_lanes() noexcept;
  void gather(lane::revoked which) noexcept;
  [[nodiscard]] result<region_heap::run> take_run(const wanted_run& wanted, queue* on);

  [[nodiscard]] result<void> free_block(grain& in, void* pointer, queue* on) noexcept;
  void put_in_lane(unsigned size_class, void* pointer, queue* on) noexcept;
  [[nodiscard]] ticket behind(queue* on) noexcept;
  [[nodiscard]] result<void> free_run(grain& in, void* pointer, queue* on) noexcept;
  // False while another revokes the lane.
  [[nodiscard]] bool keep_block(lane& mine, unsigned size_class, void* block) noexcept;
  [[nodiscard]] bool keep_run(lane& mine, const lane::run& freed) noexcept;
  void put_back(unsigned size_class, std::span<void* const> blocks, ticket freed,
                unsigned shard) noexcept;
  void dissolve(slab* whole) noexcept;
  void flush_runs(lane& mine) noexcept;

  const size_classes classes_;
  const bool checks_;
  std::atomic<bool> frees_behind_work_{false};
  const std::chrono::nanoseconds longest_wait_;
  const bool device_wait_;
  const ref<queue_slots> slots_;
  region_source source_;
  region_heap regions_;
  decay_window window_;
  central_lists central_;
  lane* lanes_ = nullptr;
  int tries_to_go_ = 0;
  pressure pressure_;
  std::atomic<std::chrono::steady_clock::time_point> next_look_{};  // at lanes
  late_memory late_;

  std::mutex records_lock_;
  ref<queue> records_queue_;  // of blocks that get their record late
};

inline void* pool::allocate_warm(std::size_t nbytes, std::size_t alignment, queue* on) noexcept {
  auto& mine = *detail::last_lane;
  if (!mine.serves(*this, on) || alignment > classes_.unit() ||
      (alignment & (alignment - 1)) != 0 || on == nullptr || on->lent() || !on->in_one_order()) {
    return nullptr;
  }
  const lane::hold held{mine};
  if (!held) [[unlikely]] {
    return nullptr;
  }
  if (nbytes - 1 >= size_classes::k_largest) [[unlikely]] {  // 0 bytes too
    auto* const run = mine.take_last_run(nbytes, regions_.table());
    return run == nullptr ? nullptr : opened(run, grains_for(nbytes) * k_grain_bytes);
  }
  const auto size_class = classes_.class_of(nbytes);
  auto& bin = mine.bins[size_class];
  if (bin.count == 0) [[unlikely]] {
    return nullptr;
  }
  auto* block = bin.blocks[--bin.count];
  if (checks_) {
    auto& owner = process_page_map.at(block).last_slab();
    owner.mark_live(owner.number_of(block));
  }
  return opened(block, classes_.bytes_of(size_class));
}

inline bool pool::deallocate_warm(void* pointer, std::size_t /*nbytes*/, queue* on) noexcept {
  auto& mine = *detail::last_lane;
  const auto& at = process_page_map.at(pointer);
  const auto seen = at.look();
  if (!mine.serves(*this, on) || on == nullptr || !on->in_one_order()) [[unlikely]] {
    return false;
  }
  note_free_behind_work();
  const lane::hold held{mine};
  if (!held) [[unlikely]] {
    return false;
  }
  if (!regions_.has_bare_blocks(seen)) [[unlikely]] {
    auto* in = seen.record();
    if (in == nullptr || !regions_.has(in) ||
        !mine.keep_run(*in, static_cast<std::byte*>(pointer), regions_.table())) {
      return false;
    }
    shut(pointer, in->span.load(k_relaxed) * k_grain_bytes, on);
    return true;
  }
  auto& bin = mine.bins[seen.size_class()];
  if (bin.count == bin.most) [[unlikely]] {
    return false;
  }
  if (checks_) {
    auto& owner = at.last_slab();
    const auto block = owner.block_at(pointer);
    if (block == slab::k_no_block || !owner.mark_dead(block)) [[unlikely]] {
      return false;
    }
  }
  shut(pointer, classes_.bytes_of(seen.size_class()), on);
  bin.blocks[bin.count++] = pointer;
  return true;
}

}  // namespace isthmus
