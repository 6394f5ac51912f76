#pragma once
// The operations in flight on one allocation: what a new operation must wait for, and its free too.
//
// An operation conflicts with another queue's where their ranges overlap and one of them writes; on
// the same queue the queue's own order is enough. A use leaves the list once it has ended, once a
// later use of its queue stands for it, or a write of its device that was ordered after it. So the
// list is as long as there are queues and disjoint ranges in flight, at most `k_longest` of a queue
// before ranges are joined (which waits for more than needed, never for less). Where it grows
// longer all the same, as each use is of another queue or an event of the caller's, the drivers are
// queried for those that have ended, each time that it has doubled. What is left of a list of
// `k_many` is joined, `k_joined` uses of the same bytes into one, and such uses again. Uses of
// different bytes are not joined: a caller who waits for one of them may have to complete the
// other. Nor are drivers' events, for which a driver's queue can wait by itself.
//
// Of two operations that are submitted at once, one that is added after the other has collected is
// not waited for by that one: they have no order to each other. An operation is added after it has
// collected, so two never wait for each other.
//
// Costs: a lock of a few instructions where one use is in the list; with n, log n for a use and for
// each conflict that is found, whatever else is in flight. The lock is held for `k_visited` uses at
// most: 0.4 to 2 us to find them, 3 to 6 us to remove them (1,000 to 16,000 in the list). Where
// there are more it is released in between, and what came meanwhile in place of a use that has left
// is found afterwards (`use_index::scan`).

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

class use_list {
 public:
  // Call before the operation is submitted, and pass what it gives to `add`: of two threads that
  // submit to one queue at once neither may think itself the later one. Makes room for the use, so
  // that `add`, which follows once, or `give_up`, cannot fail. Throws std::bad_alloc, and then
  // neither follows.
  [[nodiscard]] std::uint64_t begin();
  // Nothing was submitted.
  void give_up() noexcept;
  // So many bytes were handed out after all that ends with `end`, on that queue: how it ends is not
  // the owner's concern. Needs no memory. Pre: nobody else has the list yet, and it is empty.
  void inherit(std::uint64_t on, std::size_t nbytes, ref<event> end) noexcept {
    inherited_on_ = on;
    inherited_range_.end = nbytes;
    inherited_ = std::move(end);
    may_run_.store(true, std::memory_order_relaxed);
  }
  // Whether anything was inherited, whether or not it has ended since.
  [[nodiscard]] bool inherits() const noexcept { return inherited_on_ != 0; }
  // Adds to `out` what an operation like `wanted` must wait for.
  void collect(const use& wanted, std::vector<ref<event>>& out);
  // Needs no memory. Pre: `begin`.
  void add(const use& what, const ref<event>& ended, std::uint64_t began_at) noexcept;
  // The same of the last operations on one queue, of which none comes before another. Throws
  // std::bad_alloc; some may have been added then.
  void add_all(const use& what, const std::vector<ref<event>>& ends);
  // Whether anything was added; what was inherited is no use.
  [[nodiscard]] bool ever_used() const noexcept {
    return ever_used_.load(std::memory_order_acquire);
  }
  // Whether all that was inherited and added is known to have ended, without asking a driver.
  [[nodiscard]] bool quiet() noexcept {
    return !may_run_.load(std::memory_order_acquire) || have_ended();
  }
  // False where that is known: for those who look without a call.
  [[nodiscard]] const std::atomic<bool>& may_run() const noexcept { return may_run_; }
  // The one queue, by its serial number, of all that is not known to have ended; 0: it all has.
  // Nothing where there are several, or some is of none of ours. Asks no driver.
  [[nodiscard]] std::optional<std::uint64_t> only_queue() noexcept;
  // All that is pending there, on whichever queue.
  [[nodiscard]] std::vector<ref<event>> pending(const byte_range& where);
  // The copies that are to fill some of the bytes.
  [[nodiscard]] content_list& contents() noexcept { return contents_; }

 private:
  [[nodiscard]] bool have_ended() noexcept;
  // take(event, whether it is of the last owner) outside the lock, of each use that overlaps and
  // that choose(node), under it, chooses. `choose` may let nodes leave.
  template <class Choose, class Take>
  void visit_overlapping(const byte_range& range, bool only_writes, Choose&& choose, Take&& take);
  [[nodiscard]] static bool superseded(const pending_use& older, const use& newer,
                                       std::uint64_t began_at) noexcept;
  [[nodiscard]] bool is_inherited_over(const use& newer) const noexcept;
  // Before what is in the list is visited: a use that stands for it is found there then.
  [[nodiscard]] ref<event> inherited_end() noexcept;
  struct growth {
    bool follows_more = false;  // for `let_some_leave`
    bool leaves_some = false;   // for `drop`
    bool is_due = false;        // for `shorten`
  };
  growth insert(const use& what, const ref<event>& ended, std::uint64_t began_at,
                use_index::walk& followed) noexcept;
  [[nodiscard]] bool let_some_leave(use_index::walk& followed, const use& newest,
                                    std::uint64_t began_at) noexcept;
  void cover_own(use& newest, std::uint64_t began_at) const noexcept;
  void let_own_leave(const use& newest, std::uint64_t began_at) noexcept;
  void drop() noexcept;
  void let_all_ended_leave() noexcept;
  // Nothing while the list is short, or was inspected when it was not much shorter.
  [[nodiscard]] std::vector<pending_use> what_may_have_ended();
  void shorten() noexcept;
  void join(std::vector<pending_use> found);
  [[nodiscard]] pending_use join_few(std::span<const pending_use> few);

  static constexpr std::size_t k_longest = 32;
  static constexpr std::size_t k_visited = found_uses::k_most;  // or removed, in one hold
  static constexpr std::size_t k_many = 256;
  static constexpr std::size_t k_joined = 32;
  // Most memory is never in an operation that the host did not do itself: no lock for that.
  std::atomic<bool> ever_used_{false};
  std::atomic<bool> may_run_{false};  // some of what was added; false again once it is seen ended
  spin_lock lock_;
  std::uint32_t promised_ = 0;      // uses that have begun and are not in `uses_` yet
  std::uint64_t inherited_on_ = 0;  // a queue's serial number; 0: nothing is inherited
  byte_range inherited_range_;      // of whose use that was a write
  ref<event> inherited_;            // null: has ended, or a later use of its queue stands for it
  use_index uses_;
  std::size_t next_look_ = 2 * k_longest;  // at that length
  std::uint64_t next_number_ = 1;          // 0: of a use that is in no list
  content_list contents_;
};

}  // namespace isthmus
