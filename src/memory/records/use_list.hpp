// SPDX-License-Identifier: Apache-2.0
#pragma once
// The operations in flight on one allocation, for which a new operation, or the release of the
// memory, must wait. Thread-safe.
//
// Operations of two queues conflict if their ranges overlap and one of them writes; on one queue
// the queue's own order suffices. A use is removed from the list once it has ended, or once another
// use represents it: a later use of its queue, or a write of its device that was ordered after it.
// So the length of the list is determined by the queues and disjoint ranges in flight. A queue has
// at most `k_max_per_queue` uses before their ranges are joined, so that operations wait for more
// than needed, never for less. The list may still grow longer, if each use is of another queue or
// is an event of the caller. Then, each time the length has doubled, the drivers are queried for
// the uses that have ended. If at least `k_many` are left, they are joined: `k_joined` uses of the
// same bytes into one, and the resulting uses again. Uses of different bytes are not joined, since
// a caller that waits for one of them may have to complete the other. Driver events are not joined
// either, since a driver's queue can wait for them by itself.
//
// If two operations are submitted concurrently, and one is added after the other has called
// `collect`, the other does not wait for it: the two have no order. Every operation is added after
// its call of `collect`, so two operations never wait for each other.
//
// Costs: with one use in the list, a lock for a few instructions; with n uses, log n for adding one
// and for each conflict found, whatever else is in flight. The lock is held for at most `k_visited`
// uses: 0.4 to 2 us to find them, 3 to 6 us to remove them (with 1,000 to 16,000 in the list). If
// there are more, the lock is released in between, and uses that replaced others meanwhile are
// found afterwards (`UseIndex::Scan`).

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backend/event.hpp"
#include "core/expects.hpp"
#include "core/range_set.hpp"
#include "core/spin_lock.hpp"
#include "core/thread_safety.hpp"
#include "memory/records/content_list.hpp"
#include "memory/records/found_uses.hpp"
#include "memory/records/use_index.hpp"

namespace isthmus {

class UseList {
 public:
  // Call before the operation is submitted, and pass the result to `add`: if two threads submit to
  // one queue concurrently, neither operation may count as the later one. Allocates the memory for
  // the use, so that either `add` or `cancel`, one of which must follow once, cannot fail. Throws
  // std::bad_alloc; then neither may follow.
  [[nodiscard]] std::uint64_t begin();
  // Call after `begin`, instead of `add`, if nothing was submitted.
  void cancel() noexcept;
  // Records that the memory, of `nbytes` bytes, was allocated while earlier work on the queue with
  // serial number `key` may use it, until `end`. The outcome of that work does not affect the new
  // owner. Needs no memory. No other thread has the list yet, so no lock is needed.
  void inherit(std::uint64_t key, std::size_t nbytes,
               Ref<Event> end) noexcept ISTHMUS_NO_THREAD_SAFETY_ANALYSIS {
    ISTHMUS_EXPECTS(uses_.size() == 0 && !inherited_);
    inherited_queue_ = key;
    inherited_range_.end = nbytes;
    inherited_ = std::move(end);
    may_run_.store(true, std::memory_order_relaxed);
  }
  // Whether anything was inherited, even if it has ended since.
  [[nodiscard]] bool inherits() const noexcept { return inherited_queue_ != 0; }
  // Appends to `out` the events that an operation like `wanted` must wait for.
  void collect(const Use& wanted, std::vector<Ref<Event>>& out);
  // Adds the use of an operation that was submitted. Needs no memory.
  void add(const Use& use, const Ref<Event>& event, std::uint64_t began_at) noexcept;
  // Adds the last operations on one queue, which have no order among themselves. Throws
  // std::bad_alloc; some may have been added by then.
  void add_all(const Use& use, const std::vector<Ref<Event>>& ends);
  // Whether any use was added; inherited work does not count.
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
  // Empty if there are several, or if a use belongs to no queue of the library. Queries no driver.
  [[nodiscard]] std::optional<std::uint64_t> only_queue() noexcept;
  // The events of all pending uses of that range, on any queue.
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
  [[nodiscard]] bool is_inherited_superseded(const Use& newer) const noexcept
      ISTHMUS_REQUIRES(lock_);
  // The event of inherited work. Call before visiting the list, so that a use that represents the
  // inherited work by then is found there.
  [[nodiscard]] Ref<Event> inherited_end() noexcept;
  struct Growth {
    bool has_more_superseded = false;  // call `mark_superseded` again
    bool has_leaving = false;          // call `drop`
    bool is_due = false;               // call `shorten`
  };
  Growth insert(const Use& use, const Ref<Event>& event, std::uint64_t began_at,
                UseIndex::Walk& followed) noexcept;
  [[nodiscard]] bool mark_superseded(UseIndex::Walk& followed, const Use& newest,
                                     std::uint64_t began_at) noexcept ISTHMUS_REQUIRES(lock_);
  void cover_own(Use& newest, std::uint64_t began_at) const noexcept ISTHMUS_REQUIRES(lock_);
  void mark_own_superseded(const Use& newest, std::uint64_t began_at) noexcept
      ISTHMUS_REQUIRES(lock_);
  void drop() noexcept;
  void drop_all_ended() noexcept;
  // The uses whose completion `shorten` checks, and which it then joins. None until the list is
  // long enough for the next scan (`next_scan_length_`).
  [[nodiscard]] std::vector<PendingUse> find_candidates();
  void shorten() noexcept;
  void join(std::vector<PendingUse> found);
  [[nodiscard]] PendingUse join_uses(std::span<const PendingUse> uses);

  static constexpr std::size_t k_max_per_queue = 32;
  static constexpr std::size_t k_visited = FoundUses::k_max;  // or removed, per hold of the lock
  static constexpr std::size_t k_many = 256;
  static constexpr std::size_t k_joined = 32;
  // Avoids the lock for memory that is used only by operations that the host executes itself, as
  // most memory is.
  std::atomic<bool> ever_used_{false};
  // Whether any use may still run; false again once all are known to have ended.
  std::atomic<bool> may_run_{false};
  SpinLock lock_;
  // Uses that have begun and are not in `uses_` yet.
  std::uint32_t reserved_ ISTHMUS_GUARDED_BY(lock_) = 0;
  std::uint64_t inherited_queue_ = 0;  // a queue's serial number; 0: none
  ByteRange inherited_range_;          // counts as written
  // Null: ended, or a later use of its queue represents it.
  Ref<Event> inherited_ ISTHMUS_GUARDED_BY(lock_);
  UseIndex uses_ ISTHMUS_GUARDED_BY(lock_);
  // The length at which to inspect.
  std::size_t next_scan_length_ ISTHMUS_GUARDED_BY(lock_) = 2 * k_max_per_queue;
  std::uint64_t next_number_ ISTHMUS_GUARDED_BY(lock_) = 1;  // 0: a use that is in no list
  ContentList contents_;
};

}  // namespace isthmus
