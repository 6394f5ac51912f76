// SPDX-License-Identifier: Apache-2.0
#pragma once
// The bytes of an allocation that pending or failed copies were to fill.
//
// An operation that reads such bytes depends on the copy: it fails with DEPENDENCY if the copy
// fails, before or after the reader was submitted. This is separate from the conflicts of a
// use_list, which order operations but propagate no failure. An entry leaves the list when its copy
// has succeeded, or when other contents were written to its bytes. Cost of a call: one load if the
// list is empty; with n entries, log n plus the entries that it finds.

#include <atomic>
#include <cstdint>
#include <list>
#include <vector>

#include "backend/event.hpp"
#include "core/range_set.hpp"
#include "core/span_index.hpp"
#include "core/spin_lock.hpp"

namespace isthmus {

// Ranges are relative to the allocation's start_of_uses(). Thread-safe.
class content_list {
  struct entry;
  using entry_list = std::list<entry>;
  using event_list = std::list<ref<event>>;
  using index = span_index<std::uint64_t, entry>;

 public:
  // An entry, created before its copy is submitted so that `await` needs no memory.
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
  // Records that `filled` fills the ranges. It replaces the copies recorded for them before.
  // Precondition: `ranges` is not empty.
  void await(seat made, range_set ranges, const ref<event>& filled) noexcept;
  // The ranges have contents that depend on no copy in this list.
  void forget(const range_set& ranges) noexcept;
  // As `forget`, on condition that `written`, which is to write the ranges, or an earlier write of
  // them succeeds. Until all of these have failed no reader depends on the copies. If there is no
  // memory, the copies may still count, so that readers may fail unnecessarily. Repeating the call
  // with the same event adds nothing.
  void replace(const range_set& ranges, const ref<event>& written) noexcept;
  // Appends the copies that a reader of the range depends on. Throws std::bad_alloc.
  void collect(const byte_range& range, std::vector<ref<event>>& after);

 private:
  // The ranges of two entries do not overlap, unless memory ran out.
  struct entry {
    range_set ranges;
    ref<event> filled;
    // The operations that write there after the copy, in the order of submission. One success is
    // enough: a later failure leaves the contents that were there.
    event_list written{};
    std::uint64_t number = 0;
    entry_list::iterator self{};
    index::seat place{};  // of an entry that is not in the index

    // Whether the bytes have contents. Precondition: `drop_failed` was called.
    [[nodiscard]] bool is_over() const noexcept;
    // Whether readers depend on the copy.
    [[nodiscard]] bool decides() const noexcept;
    [[nodiscard]] bool is_last(const ref<event>& of) const noexcept {
      return !written.empty() && written.back().get() == of.get();
    }
    // Moves the leading failed writes to `gone`, so that each is inspected only once.
    void drop_failed(event_list& gone) noexcept;
    // Removes ranges. Returns whether none are left. If there is no memory they stay, so that
    // readers may fail unnecessarily.
    [[nodiscard]] bool loses_all(const range_set& removed) noexcept;
  };
  // What has left the list; destroyed after the lock is released.
  struct leavers {
    entry_list entries;
    event_list writes;
  };

  // Precondition of these: the lock is held.
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
