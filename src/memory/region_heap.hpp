#pragma once
// The run heap of a pool over regions that it gets from the driver, and their entry in the page
// map.
//
// Regions that can move are chunks in reserved addresses: a run goes over the borders of chunks
// that lie side by side. Where no free run is long enough, free chunks are moved into new
// addresses, one behind the other, and only what is missing is asked of the driver. So fragments do
// not add up: as in GMLake (Guo et al., 2024), but by whole chunks, and while they are free. Where
// a chunk can lie at two places, what was freed behind work on a queue moves for that queue before
// the work has ended: else a training run holds 1.6 times what is live (H100), and 1.014 so.

#include <atomic>
#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "core/spin_lock.hpp"
#include "memory/page_map.hpp"
#include "memory/region_source.hpp"
#include "memory/run_heap.hpp"
#include "memory/snapshot.hpp"
#include "os/futex.hpp"

namespace isthmus {

class own_caches;

// Safe for threads. The driver is called outside the lock; giving a run back never calls it.
class region_heap {
 public:
  using index = run_heap::index;
  struct run {
    std::byte* base = nullptr;
    index first = run_heap::k_none;
    index count = 0;
    ticket until;  // what still is on it
  };

  // All that it holds comes from `source`, which outlives it.
  region_heap(region_source& source, queue_slots& slots) noexcept
      : source_{source}, slots_{slots} {}
  // All regions go back. Pre: nothing in them is in use.
  ~region_heap();
  region_heap(const region_heap&) = delete;
  region_heap& operator=(const region_heap&) = delete;

  // Before anything else. OUT_OF_MEMORY where the host has no address space for the table.
  [[nodiscard]] result<void> open();

  // What a request may be cut from: where regions cannot move, one that nothing uses, larger than
  // what would be asked of the driver, is too good for less than half of it: it could go back
  // instead (`make_way`), and with a small block in it cannot. Recorded table operations held 1.37
  // times what they requested cutting all, and 1.17 times sparing these.
  // `sparing`: those too on which work may run, as nobody has looked; `sparing_idle`: not those.
  enum class cut { sparing, sparing_idle, any };
  // Of memory at hand that is good for the queue in slot `whom`; count 0 if none is long enough.
  // `alignment` in bytes, a power of two.
  [[nodiscard]] run take(index count, std::size_t alignment, queue_slots::slot whom,
                         cut from = cut::sparing) noexcept;
  // Joins neighbours that waited for different queues and wait no more.
  void settle() noexcept;
  // Such a run in any case: of what another thread brought meanwhile, else of more memory. Errors
  // as `region_source::allocate`. Threads that ask the driver wait for one another; those that ask
  // another resource do not, as it may be the program's code, and wait for this thread.
  [[nodiscard]] result<run> grow(index count, std::size_t alignment, queue_slots::slot whom);
  // A region of at least so many bytes.
  [[nodiscard]] result<void> grow_by(std::size_t nbytes);
  void give(index first, ticket freed) noexcept;
  // Gives free memory back to the driver while more than `keep` bytes are held: whole regions and,
  // where they divide, parts of a size that is worth it. Bytes given back.
  std::size_t trim(std::size_t keep) noexcept;
  // Gives back regions that nothing uses and that did not serve, the smallest first, till they come
  // to as much as is asked of the driver now. Pre: regions cannot move.
  void make_way(std::size_t needed) noexcept;
  // Threads that are at another resource, in place of the driver; and a wait till another than this
  // one came back from there since `look_upstream` gave `seen`, on this thread: false where
  // nobody is there, or at `until`. CALLBACK where the thread's interrupt function ended the wait.
  [[nodiscard]] std::uint32_t at_upstream() const noexcept {
    return at_upstream_.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::uint32_t look_upstream() const noexcept;
  [[nodiscard]] result<bool> wait_for_upstream(std::uint32_t seen, const os::deadline& until) const;

  [[nodiscard]] bool is_open() const noexcept { return table_ != nullptr; }
  [[nodiscard]] grain_table& table() const noexcept { return *table_; }
  // Whether a record that the page map gave is of this heap, and not of another pool's.
  [[nodiscard]] bool has(const grain* record) const noexcept {
    return &grain_table::of(record) == table_;
  }
  // Whether blocks of this heap lie in a grain, none of which has a record.
  [[nodiscard]] bool has_bare_blocks(map_entry::seen in) const noexcept {
    return in.is_bare_of(table_, k_grain_table_alignment);
  }
  // Of chunks that are in no row and go back when the work on them has ended: good for nobody, the
  // queue of that work neither.
  [[nodiscard]] std::size_t late_bytes() const noexcept {
    return late_bytes_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::size_t free_bytes() noexcept;
  // The least that was free at any moment since this was asked last: nobody needed that much.
  [[nodiscard]] std::size_t least_free_bytes() noexcept;
  // How its memory is used, and the grains of the longest run that a request of this thread gets
  // of it without more: with what the thread keeps (null: not counted), and of what is free alone.
  struct counted {
    snapshot seen;
    index reach = 0;
    index free_reach = 0;
  };
  [[nodiscard]] counted count(const own_caches* mine) const;
  // When the region that the grain lies in came from another resource, as an order (`region`); 0:
  // it came from the driver.
  [[nodiscard]] std::uint64_t since(const grain& of) const noexcept;
  // INTERNAL for records that contradict one another.
  [[nodiscard]] result<void> verify() noexcept;

 private:
  class assembly;
  // Around what calls the driver: one thread at a time, before the lock. Where another resource
  // stands in its place it is no more than told that somebody is there.
  class turn {
   public:
    explicit turn(region_heap& of) noexcept;
    ~turn();
    turn(const turn&) = delete;
    turn& operator=(const turn&) = delete;
    // It has more memory, and is about to cut from it: till it ends no whole region goes back.
    void bring() noexcept;

   private:
    region_heap& of_;
    bool brings_ = false;
  };
  static constexpr auto k_most_bytes = std::size_t{grain_table::k_grains} * k_grain_bytes;
  // In grains, of a chunk that divides: less is not worth a mapping of its own, of which a process
  // on Linux has some 65,000. A whole chunk may be smaller: it leaves none behind.
  static constexpr index k_least_part = 32;
  static constexpr std::uint32_t k_swap_costs = 16;
  static constexpr std::uint32_t k_most_thrift = 16 * k_swap_costs;
  // A region that nothing uses, or a part of one that divides.
  struct unused {
    std::size_t position;  // of the region
    index first;
    index count;
    index run;  // the free run that it lies in
    ticket until;
  };
  // A region that is in no row, or the place that it moved from, and what still is on it.
  struct piece {
    region what;
    ticket until;
    bool is_left = false;
  };

  struct span_of_grains {
    index first = run_heap::k_none;
    index count = 0;
  };

  // On grains that are free, if nothing is on them; whether it did. Pre: under the lock.
  bool put_poison(index first, index count, ticket until) const noexcept;
  void put_poison_where_work_ended() const noexcept;
  struct free_run {
    index count;
    ticket until;
  };
  [[nodiscard]] std::optional<free_run> free_run_at(index first) const noexcept;
  [[nodiscard]] std::size_t live_blocks_in(slab& in) const noexcept;
  class stretches;
  [[nodiscard]] index movable_in(index first, index end) const noexcept;
  [[nodiscard]] std::pair<index, index> some_movable_in(index first, index end) const noexcept;
  [[nodiscard]] index may_move_at_once(index movable) const noexcept;
  [[nodiscard]] span_of_grains grains_from(index number) const noexcept;
  [[nodiscard]] static error beyond_all(std::size_t nbytes);
  [[nodiscard]] result<void> grow_for(index count, std::size_t alignment, queue_slots::slot whom,
                                      turn& mine);
  [[nodiscard]] result<void> add_region(std::size_t nbytes, turn& mine);
  [[nodiscard]] result<void> assemble(std::size_t needed, std::size_t wanted,
                                      queue_slots::slot whom);
  [[nodiscard]] result<bool> assemble_from(std::vector<piece> to_move, std::size_t needed,
                                           std::size_t wanted);
  [[nodiscard]] result<void> enter(std::vector<piece>& row);
  // Pre, of these: under `growing_`.
  [[nodiscard]] bool is_elsewhere_too(const region& which) const noexcept;
  [[nodiscard]] bool may_go(const piece& gone) const noexcept;
  void let_go(const piece& gone) noexcept;
  void drop(const piece& gone) noexcept;   // with room for it where it may not go yet
  std::size_t drop_what_ended() noexcept;  // the bytes that the driver has back
  template <class Visit>
  bool any_row(Visit&& visit) noexcept;
  [[nodiscard]] index unite(index wanted, queue_slots::slot whom,
                            std::unique_lock<spin_lock>& hold) noexcept;
  void unite_all(queue_slots::slot whom, std::unique_lock<spin_lock>& hold) noexcept;
  [[nodiscard]] index find_numbers(index count) noexcept;
  [[nodiscard]] index least_that_may_go() const noexcept;
  [[nodiscard]] std::vector<unused> find_unused(queue_slots::slot whom) const;
  [[nodiscard]] std::vector<region> take_out(const std::vector<unused>& which);
  [[nodiscard]] std::vector<piece> take_to_move(std::size_t needed, queue_slots::slot whom);
  [[nodiscard]] std::vector<region> take_to_trim(std::size_t keep);
  [[nodiscard]] region take_whole(std::size_t room) noexcept;
  [[nodiscard]] bool is_spared(index found, index count, cut from) const noexcept;
  std::size_t trim_one_by_one(std::size_t keep) noexcept;
  [[nodiscard]] std::vector<region>::const_iterator region_of(index number) const noexcept;
  [[nodiscard]] std::byte* address_of(index first) const noexcept;

  region_source& source_;
  queue_slots& slots_;
  grain_table* table_ = nullptr;
  std::mutex growing_;
  std::vector<piece> late_;                 // under it: what goes once the work on it has ended
  std::atomic<std::size_t> late_bytes_{0};  // of whole chunks there
  std::atomic<std::uint32_t> fresh_{0};     // turns that brought memory
  std::atomic<std::uint32_t> at_upstream_{0};
  std::atomic<std::uint32_t> came_back_{0};  // from there, so far
  mutable spin_lock lock_;
  run_heap runs_{nullptr, nullptr, nullptr, slots_};
  std::optional<std::uint64_t> settled_at_;  // passes of tickets
  // When the neighbours that are good for a queue were too few for a request.
  struct {
    std::optional<run_heap::state> when;
    index wanted = 0;
    queue_slots::slot whom = queue_slots::k_quiet;
  } vain_;
  std::uint64_t least_free_ = 0;  // in grains
  // What pays for regions that go back for smaller ones: a request earns one, a swap costs sixteen,
  // so that a program which asks in turn for much and for little seldom waits for the driver.
  std::uint32_t thrift_ = k_most_thrift;
  std::vector<region> regions_;  // by their first grain
};

// Visits rows of regions, in which runs go over the borders, until one serves. Pre: under the lock.
template <class Visit>
bool region_heap::any_row(Visit&& visit) noexcept {
  for (auto each = regions_.begin(); each != regions_.end();) {
    const auto first = each->first;
    auto behind = first;
    for (; each != regions_.end() && each->first == behind; ++each) {
      behind += each->count;
    }
    if (visit(first, behind - first)) {
      return true;
    }
  }
  return false;
}

}  // namespace isthmus
