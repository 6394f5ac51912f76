#pragma once
// Bytes of an allocation that copies in flight, or copies that failed, were to fill.
//
// What reads such bytes depends on that copy: it fails with DEPENDENCY if the copy does, whether
// that was known when the reader was submitted or not. That is apart from the conflicts of a
// use_list, which order and do not propagate. An entry leaves when its copy succeeded, or when its
// bytes were filled in another way. Costs where there are none: one load.

#include <atomic>
#include <cstdint>
#include <list>
#include <vector>

#include "backend/event.hpp"
#include "core/range_set.hpp"
#include "core/spin_lock.hpp"

namespace isthmus {

// Ranges count from the allocation's start_of_uses(). Safe for threads.
class content_list {
 public:
  [[nodiscard]] bool any() const noexcept { return any_.load(std::memory_order_acquire); }
  // Before a copy is submitted: `await`, which follows once, or `give_up`, then needs no memory for
  // its entry. Throws std::bad_alloc, and then neither follows.
  void reserve();
  // Nothing was submitted, or it has ended already.
  void give_up() noexcept;
  // `filled` fills the ranges, in place of what was awaited for them before. Pre: `reserve`.
  void await(range_set ranges, const ref<event>& filled) noexcept;
  // The ranges have contents that no copy in this list decides about.
  void forget(const range_set& ranges) noexcept;
  // The same if `written`, which is to fill them, succeeds, or an earlier one does that was to;
  // until these have ended nobody depends on the copies. Without memory they may still count:
  // readers fail that need not. Costs nothing for the same event once more.
  void replace(const range_set& ranges, const ref<event>& written) noexcept;
  // Adds the copies that one who reads the range depends on. Throws std::bad_alloc.
  void collect(const byte_range& range, std::vector<ref<event>>& after);

 private:
  using event_list = std::list<ref<event>>;

  struct entry {
    range_set ranges;
    ref<event> filled;
    // By what writes there after it, in the order in which it was submitted. One that succeeds is
    // enough: a later one that fails leaves what is there.
    event_list written{};

    // Whether the contents are there. Pre: `drop_failed`.
    [[nodiscard]] bool is_over() const noexcept;
    // Whether readers depend on the copy.
    [[nodiscard]] bool decides() const noexcept;
    [[nodiscard]] bool is_last(const ref<event>& of) const noexcept {
      return !written.empty() && written.back().get() == of.get();
    }
    // Those that failed, up to the first that did not: so each is looked at once.
    void drop_failed(event_list& gone) noexcept;
  };
  // What has left the list, to be released without the lock.
  struct leavers {
    std::vector<entry> entries;
    event_list writes;
  };
  // Pre: the lock is held.
  void remove(const range_set& ranges, leavers& gone) noexcept;

  std::atomic<bool> any_{false};
  spin_lock lock_;
  std::uint32_t promised_ = 0;  // entries that were reserved and are not in `entries_` yet
  std::vector<entry> entries_;
};

}  // namespace isthmus
