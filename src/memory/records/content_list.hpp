// SPDX-License-Identifier: Apache-2.0
#pragma once
// The bytes of an allocation whose contents depend on copies that are pending or have failed.
//
// An operation that reads such bytes depends on the copy: it fails with DEPENDENCY if the copy
// fails, before or after the reader was submitted. This is separate from the conflicts of a use
// list (use_list.hpp), which order operations but propagate no failure. An entry is removed from
// the list when its copy has succeeded, or when other contents were written to its bytes. Cost of a
// call: one load if the list is empty; with n entries, O(log n) plus the number of entries found.

#include <atomic>
#include <cstdint>
#include <list>
#include <vector>

#include "backend/event.hpp"
#include "core/range_set.hpp"
#include "core/span_index.hpp"
#include "core/spin_lock.hpp"
#include "core/thread_safety.hpp"

namespace isthmus {

// Ranges are relative to the allocation's start_of_uses(). Thread-safe.
class ContentList {
  struct Entry;
  using EntryList = std::list<Entry>;
  using EventList = std::list<Ref<Event>>;
  using Index = SpanIndex<std::uint64_t, Entry>;

 public:
  // A preallocated entry: created before its copy is submitted, so that `record_fill` does not
  // allocate.
  class Seat {
   public:
    Seat();  // throws std::bad_alloc
    Seat(Seat&&) = default;
    Seat& operator=(Seat&&) = delete;
    ~Seat();

   private:
    friend class ContentList;
    EntryList node_;
  };

  [[nodiscard]] bool any() const noexcept { return any_.load(std::memory_order_acquire); }
  // Records that the copy `filled` fills the ranges. Replaces the copies recorded for them before.
  void record_fill(Seat seat, RangeSet ranges, const Ref<Event>& filled) noexcept;
  // Removes the ranges from the list, because their contents no longer depend on a copy.
  void forget(const RangeSet& ranges) noexcept;
  // Records that the operation `written` writes the ranges. Readers depend on the copies again only
  // if all such operations have failed. If there is no host memory, readers may still depend on the
  // copies, and so fail unnecessarily. A repeated call with the same event has no effect.
  void replace(const RangeSet& ranges, const Ref<Event>& written) noexcept;
  // Appends the copies that a reader of the range depends on. Throws std::bad_alloc.
  void collect(const ByteRange& range, std::vector<Ref<Event>>& after);

 private:
  // The ranges of two entries do not overlap, unless memory ran out.
  struct Entry {
    RangeSet ranges;
    Ref<Event> filled;
    // The operations that write the ranges after the copy, in the order of submission. One success
    // suffices: a later failure does not invalidate the contents.
    EventList written{};
    std::uint64_t number = 0;
    EntryList::iterator self{};
    Index::Seat index_seat{};  // valid while the entry is not in the index

    // Whether the copy or a later write has succeeded. Call `drop_failed` first.
    [[nodiscard]] bool is_finished() const noexcept;
    // Whether readers depend on the copy.
    [[nodiscard]] bool is_dependency() const noexcept;
    [[nodiscard]] bool is_last(const Ref<Event>& event) const noexcept {
      return !written.empty() && written.back().get() == event.get();
    }
    // Moves the leading failed writes to `dropped`, so that each is inspected only once.
    void drop_failed(EventList& dropped) noexcept;
    // Removes ranges. Returns whether none are left. If there is no host memory, the ranges are not
    // removed, so that readers may fail unnecessarily.
    [[nodiscard]] bool remove_ranges(const RangeSet& removed) noexcept;
  };
  // Entries and events that were removed from the list, to be destroyed after the lock is released.
  struct RemovedEntries {
    EntryList entries;
    EventList writes;
  };

  void add(EntryList& source, Entry& added) noexcept ISTHMUS_REQUIRES(lock_);
  void extract(Entry& entry, EntryList& target) noexcept ISTHMUS_REQUIRES(lock_);
  void remove(const RangeSet& ranges, RemovedEntries& removed) noexcept ISTHMUS_REQUIRES(lock_);
  void replace_in(Entry& entry, const RangeSet& ranges, const Ref<Event>& written)
      ISTHMUS_REQUIRES(lock_);
  void drop_some(RemovedEntries& removed) noexcept ISTHMUS_REQUIRES(lock_);
  void drop_finished(const ByteRange& range, RemovedEntries& removed) noexcept
      ISTHMUS_REQUIRES(lock_);

  std::atomic<bool> any_{false};
  SpinLock lock_;
  std::uint64_t last_number_ ISTHMUS_GUARDED_BY(lock_) = 0;
  EntryList entries_ ISTHMUS_GUARDED_BY(lock_);
  Index index_ ISTHMUS_GUARDED_BY(lock_);
};

}  // namespace isthmus
