#pragma once
// The operations in flight on one allocation: what a new operation must wait for, and its free too.
//
// An operation conflicts with another queue's where their ranges overlap and one of them writes; on
// the same queue the queue's own order is enough. Adding costs a lock of a few instructions; the
// list is as long as there are queues and disjoint ranges in flight, at most `k_longest` a queue
// before ranges are joined (which waits for more than needed, never for less). Where it grows
// longer all the same, as each use is of another queue or an event of the caller's, the drivers are
// queried for those that have ended, each time that it has doubled. What is left of a list of
// `k_many` is joined, `k_joined` uses of the same bytes into one, and such uses again. So n uses
// cost n log n. Uses of different bytes are not joined: a caller who waits for one of them may have
// to complete the other. Nor are drivers' events, for which a driver's queue can wait by itself.

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

namespace isthmus {

struct use {
  // The serial number of a queue: its address may be another queue's while an operation of it still
  // runs. 0: of no queue of ours, an event that the caller recorded.
  std::uint64_t on = 0;
  byte_range range;
  bool writes = false;
  // Of whoever had the memory before: it comes first, and how it ends is not our concern.
  bool is_of_others = false;
};

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
  struct entry {
    use what;
    ref<event> ended;
    std::uint64_t number = 0;
    unsigned joins = 0;  // how often what it stands for was joined
  };
  [[nodiscard]] bool have_ended() noexcept;
  [[nodiscard]] static bool superseded(const entry& older, const use& newer,
                                       std::uint64_t began_at) noexcept;
  [[nodiscard]] bool is_inherited_over(const use& newer) const noexcept;
  struct growth {
    bool is_widened = false;  // the use that was inserted supersedes more than was taken out
    bool is_due = false;      // for `shorten`
  };
  growth insert(use& what, const ref<event>& ended, std::uint64_t began_at) noexcept;
  void drop_superseded(const use& by, std::uint64_t began_at) noexcept;
  void cover_own(use& newest, std::uint64_t began_at) const noexcept;
  template <class Leaves>
  std::size_t take_out(std::span<entry> gone, Leaves&& leaves) noexcept;
  // Nothing while the list is short, or was inspected when it was not much shorter.
  [[nodiscard]] std::vector<entry> what_may_have_ended();
  void shorten() noexcept;
  void join(std::vector<entry> found);
  [[nodiscard]] entry join_few(std::span<const entry> few);

  static constexpr std::size_t k_longest = 32;
  static constexpr std::size_t k_many = 256;
  static constexpr std::size_t k_joined = 32;
  // Most memory is never in an operation that the host did not do itself: no lock for that.
  std::atomic<bool> ever_used_{false};
  std::atomic<bool> may_run_{false};  // some of what was added; false again once it is seen ended
  spin_lock lock_;
  std::uint32_t promised_ = 0;      // uses that have begun and are not in `entries_` yet
  std::uint64_t inherited_on_ = 0;  // a queue's serial number; 0: nothing is inherited
  byte_range inherited_range_;      // of whose use that was a write
  ref<event> inherited_;            // null: has ended, or a later use of its queue stands for it
  std::vector<entry> entries_;
  std::size_t next_look_ = 2 * k_longest;  // at that length
  std::uint64_t next_number_ = 1;          // 0: of a use that is in no list
  content_list contents_;
};

}  // namespace isthmus
