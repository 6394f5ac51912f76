#pragma once
// Bytes of an allocation that copies in flight, or copies that failed, were to fill.
//
// What reads such bytes depends on that copy: it fails with DEPENDENCY if the copy does, whether
// that was known when the reader was submitted or not. That is apart from the conflicts of a
// use_list, which order and do not propagate. An entry leaves when its copy succeeded, or when its
// bytes were filled in another way. Costs where there are none: one load; of n entries a call costs
// log n, and what it finds.

#include <atomic>
#include <cstdint>
#include <list>
#include <vector>

#include "backend/event.hpp"
#include "core/range_set.hpp"
#include "core/span_index.hpp"
#include "core/spin_lock.hpp"

namespace isthmus {

// Ranges count from the allocation's start_of_uses(). Safe for threads.
class content_list {
  struct entry;
  using entry_list = std::list<entry>;
  using event_list = std::list<ref<event>>;
  using index = span_index<std::uint64_t, entry>;

 public:
  // An entry that is made before its copy is submitted: `await` then needs no memory.
  class seat {
   public:
    seat();  // throws std::bad_alloc
    seat(seat&&) = default;
    seat& operator=(seat&&) = delete;
    ~seat();

   private:
    friend class content_list;
    entry_list one_;
  };

  [[nodiscard]] bool any() const noexcept { return any_.load(std::memory_order_acquire); }
  // `filled` fills the ranges, of which there are some, in place of what was awaited for them
  // before.
  void await(seat made, range_set ranges, const ref<event>& filled) noexcept;
  // The ranges have contents that no copy in this list decides about.
  void forget(const range_set& ranges) noexcept;
  // The same if `written`, which is to fill them, succeeds, or an earlier one does that was to;
  // until these have ended nobody depends on the copies. Without memory they may still count:
  // readers fail that need not. Costs nothing for the same event once more.
  void replace(const range_set& ranges, const ref<event>& written) noexcept;
  // Adds the copies that one who reads the range depends on. Throws std::bad_alloc.
  void collect(const byte_range& range, std::vector<ref<event>>& after);

 private:
  // Of no two the ranges overlap, but for lack of memory.
  struct entry {
    range_set ranges;
    ref<event> filled;
    // By what writes there after it, in the order in which it was submitted. One that succeeds is
    // enough: a later one that fails leaves what is there.
    event_list written{};
    std::uint64_t number = 0;
    entry_list::iterator self{};
    index::seat place{};  // while it is not in the index

    // Whether the contents are there. Pre: `drop_failed`.
    [[nodiscard]] bool is_over() const noexcept;
    // Whether readers depend on the copy.
    [[nodiscard]] bool decides() const noexcept;
    [[nodiscard]] bool is_last(const ref<event>& of) const noexcept {
      return !written.empty() && written.back().get() == of.get();
    }
    // Those that failed, up to the first that did not: so each is looked at once.
    void drop_failed(event_list& gone) noexcept;
    // Whether none are left. Without memory it keeps them: its readers fail that need not.
    [[nodiscard]] bool loses_all(const range_set& removed) noexcept;
  };
  // What has left the list, to be released without the lock.
  struct leavers {
    entry_list entries;
    event_list writes;
  };

  // Pre for all: the lock is held.
  void add(entry_list& from, entry& added) noexcept;
  void extract(entry& gone, entry_list& to) noexcept;
  void remove(const range_set& ranges, leavers& gone) noexcept;
  void replace_in(entry& of, const range_set& ranges, const ref<event>& written);
  void drop_some(leavers& gone) noexcept;
  void drop_over(const byte_range& range, leavers& gone) noexcept;

  std::atomic<bool> any_{false};
  spin_lock lock_;
  std::uint64_t made_ = 0;
  entry_list entries_;
  index index_;
};

}  // namespace isthmus
