// SPDX-License-Identifier: Apache-2.0
#pragma once
// The operations in flight on one allocation: what a new operation, or the release of the memory,
// must wait for. Thread-safe.
//
// Operations of two queues conflict if their ranges overlap and one of them writes; on one queue
// the queue's own order suffices. A use leaves the list once it has ended, or once another use
// stands for it: a later use of its queue, or a write of its device that was ordered after it. So
// the list is as long as there are queues and disjoint ranges in flight, with at most
// `k_max_per_queue` uses of a queue before ranges are joined (which waits for more than needed,
// never for less). If it grows longer nevertheless, because each use is of another queue or an
// event of the caller's, the drivers are queried for those that have ended, each time it has
// doubled. If `k_many` are left, they are joined, `k_joined` uses of the same bytes into one, and
// such uses again. Uses of different bytes are not joined: a caller that waits for one of them may
// have to complete the other. Nor are driver events, for which a driver's queue can wait by itself.
//
// If two operations are submitted concurrently and one is added after the other has collected, the
// other does not wait for it: they have no order. An operation is added after it has collected, so
// two operations never wait for each other.
//
// Costs: a lock of a few instructions while one use is in the list; with n uses, log n for adding
// one and for each conflict found, whatever else is in flight. The lock is held for `k_visited`
// uses at most: 0.4 to 2 us to find them, 3 to 6 us to remove them (with 1,000 to 16,000 in the
// list). If there are more it is released in between, and uses that replaced others meanwhile are
// found afterwards (`UseIndex::Scan`).

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backend/event.hpp"
#include "core/range_set.hpp"
#include "core/spin_lock.hpp"
#include "memory/content_list.hpp"
#include "memory/found_uses.hpp"
#include "memory/use_index.hpp"

namespace isthmus {

class UseList {
 public:
  // Call before the operation is submitted, and pass the result to `add`: of two threads that
  // submit to one queue concurrently, neither may take itself for the later one. Allocates the
  // memory for the use, so that either `add` or `cancel`, one of which must follow once, cannot
  // fail. Throws std::bad_alloc; then neither may follow.
  [[nodiscard]] std::uint64_t begin();
  // Follows `begin` if nothing was submitted.
  void cancel() noexcept;
  // The memory, of `nbytes` bytes, was allocated while earlier work on queue `key` may still use
  // it, until `end`. The outcome of that work is not the new owner's concern. Needs no memory. Pre:
  // no other thread has the list yet, and it is empty.
  void inherit(std::uint64_t key, std::size_t nbytes, Ref<Event> end) noexcept {
    inherited_queue_ = key;
    inherited_range_.end = nbytes;
    inherited_ = std::move(end);
    may_run_.store(true, std::memory_order_relaxed);
  }
  // Whether anything was inherited, even if it has ended since.
  [[nodiscard]] bool inherits() const noexcept { return inherited_queue_ != 0; }
  // Appends to `out` what an operation like `wanted` must wait for.
  void collect(const Use& wanted, std::vector<Ref<Event>>& out);
  // Needs no memory. Pre: `begin` was called.
  void add(const Use& use, const Ref<Event>& event, std::uint64_t began_at) noexcept;
  // Adds the last operations on one queue, which have no order among themselves. Throws
  // std::bad_alloc; some may have been added by then.
  void add_all(const Use& use, const std::vector<Ref<Event>>& ends);
  // Whether anything was added; what was inherited does not count.
  [[nodiscard]] bool ever_used() const noexcept {
    return ever_used_.load(std::memory_order_acquire);
  }
  // Whether everything inherited and added is known to have ended, without querying a driver.
  [[nodiscard]] bool is_known_idle() noexcept {
    return !may_run_.load(std::memory_order_acquire) || have_ended();
  }
  // False if `is_known_idle` is known to hold, for readers that avoid the call.
  [[nodiscard]] const std::atomic<bool>& may_run() const noexcept { return may_run_; }
  // The serial number of the only queue whose uses are not known to have ended; 0 if all have.
  // Empty if there are several, or if a use belongs to no queue of the library's. Queries no
  // driver.
  [[nodiscard]] std::optional<std::uint64_t> only_queue() noexcept;
  // The events of everything pending on that range, on any queue.
  [[nodiscard]] std::vector<Ref<Event>> pending(const ByteRange& range);
  // The pending copies that will fill some of the bytes.
  [[nodiscard]] ContentList& contents() noexcept { return contents_; }

 private:
  [[nodiscard]] bool have_ended() noexcept;
  // Calls visit(event, whether it is the previous owner's), outside the lock, for each overlapping
  // use that choose(node), called under the lock, accepts. `choose` may mark nodes as leaving.
  template <class Choose, class Take>
  void visit_overlapping(const ByteRange& range, bool only_writes, Choose&& choose, Take&& visit);
  [[nodiscard]] static bool superseded(const PendingUse& older, const Use& newer,
                                       std::uint64_t began_at) noexcept;
  [[nodiscard]] bool is_inherited_superseded(const Use& newer) const noexcept;
  // Call before visiting the list, so that a use that then stands for it is found there.
  [[nodiscard]] Ref<Event> inherited_end() noexcept;
  struct Growth {
    bool has_more_superseded = false;  // call `mark_superseded` again
    bool has_leaving = false;          // call `drop`
    bool is_due = false;               // call `shorten`
  };
  Growth insert(const Use& use, const Ref<Event>& event, std::uint64_t began_at,
                UseIndex::Walk& followed) noexcept;
  [[nodiscard]] bool mark_superseded(UseIndex::Walk& followed, const Use& newest,
                                     std::uint64_t began_at) noexcept;
  void cover_own(Use& newest, std::uint64_t began_at) const noexcept;
  void mark_own_superseded(const Use& newest, std::uint64_t began_at) noexcept;
  void drop() noexcept;
  void drop_all_ended() noexcept;
  // Empty while the list is short, or not much longer than when it was last inspected.
  [[nodiscard]] std::vector<PendingUse> find_candidates();
  void shorten() noexcept;
  void join(std::vector<PendingUse> found);
  [[nodiscard]] PendingUse join_uses(std::span<const PendingUse> uses);

  static constexpr std::size_t k_max_per_queue = 32;
  static constexpr std::size_t k_visited = FoundUses::k_max;  // or removed, per hold of the lock
  static constexpr std::size_t k_many = 256;
  static constexpr std::size_t k_joined = 32;
  // Most memory is only ever used by operations that the host executes itself: no lock for that.
  std::atomic<bool> ever_used_{false};
  // Whether something that was added may run; false again once all was seen to have ended.
  std::atomic<bool> may_run_{false};
  SpinLock lock_;
  std::uint32_t reserved_ = 0;         // uses that have begun and are not in `uses_` yet
  std::uint64_t inherited_queue_ = 0;  // a queue's serial number; 0: none
  ByteRange inherited_range_;          // counts as written
  Ref<Event> inherited_;               // null: ended, or a later use of its queue stands for it
  UseIndex uses_;
  std::size_t next_scan_length_ = 2 * k_max_per_queue;  // the length at which to inspect
  std::uint64_t next_number_ = 1;                       // 0: a use that is in no list
  ContentList contents_;
};

}  // namespace isthmus
