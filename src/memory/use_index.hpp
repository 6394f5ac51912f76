// SPDX-License-Identifier: Apache-2.0
#pragma once
// The uses of a `UseList`, found by their bytes and by their queue in logarithmic time.
//
// By bytes: a tree sorted by the first byte, in which every node stores the furthest end in its
// subtree, the furthest end of a write, and the newest number. So the uses that overlap a range are
// found without visiting the rest, for a read only writes are visited, and recent uses are found
// without visiting older ones. By queue: a tree sorted by queue. A use that leaves stays in both
// trees until `drop`, which releases events and so must not run everywhere.
//
// No function visits more uses than the caller allows, so that a lock around it is held only that
// long. The exception is `visit_queue`, since a queue has few uses (use_list.hpp).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "backend/event.hpp"
#include "core/chain.hpp"
#include "core/range_set.hpp"
#include "core/treap.hpp"

namespace isthmus {

class Device;

struct Use {
  // The serial number of a queue, since its address may be another queue's while an operation of it
  // still runs. 0: no queue of the library's; an event that the caller recorded.
  std::uint64_t queue_serial = 0;
  ByteRange range;
  bool writes = false;
  // By the memory's previous owner: it is waited for, but its outcome does not matter here.
  bool is_previous_owners = false;
  // It was submitted after everything that conflicts with it and was in the list when it began: its
  // end implies theirs.
  bool follows_conflicts = false;
  // The device and context of the queue. Operations of one device end together if it is lost,
  // whatever they wait for; those of another device or context continue.
  const Device* device = nullptr;
  const Context* context = nullptr;
};

struct PendingUse {
  Use use;
  Ref<Event> event;
  std::uint64_t number = 0;  // unique; 0: in no list
  unsigned joins = 0;        // how often the uses it stands for were joined
};

// Not thread-safe. Only `Chain` releases memory or events: destroy it outside of locks.
class UseIndex {
 public:
  struct Node : PendingUse {
    std::uint32_t priority = 0;
    bool is_leaving = false;    // it has ended, or another use stands for it
    std::size_t end = 0;        // the furthest in this subtree
    std::size_t write_end = 0;  // the furthest of a write
    std::uint64_t newest = 0;   // the greatest number in it
    TreeLinks<Node> by_bytes{};
    TreeLinks<Node> by_queue{};
    Node* next = nullptr;  // in `active_` or `leaving_`
    Node* previous = nullptr;
  };
  using Chain = isthmus::Chain<Node>;

  UseIndex() noexcept = default;
  UseIndex(const UseIndex&) = delete;
  UseIndex& operator=(const UseIndex&) = delete;
  ~UseIndex();

  // Spare nodes: `insert` takes one for each use.
  [[nodiscard]] std::size_t spare() const noexcept { return spare_count_; }
  void add_spare(std::unique_ptr<Node> node) noexcept;
  // Pre: there is a spare node; the number is unique.
  void insert(PendingUse added) noexcept;
  void remove(Node& node, Chain& out) noexcept;

  // Includes the uses that leave, until they are dropped.
  [[nodiscard]] std::size_t size() const noexcept { return active_.count + leaving_.count; }
  // Pre: there is exactly one.
  [[nodiscard]] const PendingUse& only() const noexcept { return *bytes_.root(); }
  // Exchanges the only use with `use`.
  void replace_only(PendingUse& use) noexcept;

  [[nodiscard]] bool are_all_leaving() const noexcept { return active_.first == nullptr; }
  void mark_leaving(Node& node) noexcept;
  // Marks ended uses as leaving, from the first on, until one has not ended or `max` are marked.
  // False if the next one has ended too.
  [[nodiscard]] bool mark_first_ended(std::size_t max) noexcept;
  // Examines the first `count` uses: those that have ended leave, the others become the last.
  void examine(std::size_t count) noexcept;
  // Removes at most `max` of those that leave. False if some are left.
  bool drop(std::size_t max, Chain& out) noexcept;

  // Null if it was removed.
  [[nodiscard]] Node* find(const PendingUse& use) const noexcept;
  // Visits what overlaps a range, leaving or not, ordered by first byte and number; only writes if
  // `only_writes`. It keeps its position in that order, whatever is added and removed between two
  // calls.
  class Walk {
   public:
    explicit Walk(const ByteRange& range, bool only_writes = false) noexcept
        : range_{range}, only_writes_{only_writes} {}
    // visit(node) for at most `max` of the next uses; it may mark nodes as leaving. Returns
    // whether they were the last.
    template <class Visit>
    bool visit_next(const UseIndex& in, std::size_t max, Visit&& visit) {
      visit_below(in.bytes_.root(), max, visit);
      return max != 0;
    }
    // Starts again, with only those uses that have the number `first` or a greater one.
    void restart(std::uint64_t first) noexcept {
      min_number_ = first;
      last_begin_ = 0;
      last_number_ = 0;
    }

   private:
    [[nodiscard]] bool is_past(const Node& node) const noexcept {
      return node.use.range.begin == last_begin_ ? node.number <= last_number_
                                                 : node.use.range.begin < last_begin_;
    }
    template <class Visit>
    void visit_below(Node* top, std::size_t& max, Visit& visit);

    ByteRange range_;
    bool only_writes_;
    std::uint64_t min_number_ = 0;
    std::size_t last_begin_ = 0;  // of the use visited last
    std::uint64_t last_number_ = 0;
  };
  // A walk that does not miss uses replaced between two calls: the use that then stands for them is
  // newer and may come before what was visited already. So uses added meanwhile are visited
  // afterwards, then those added during that, until none were.
  class Scan {
   public:
    explicit Scan(const ByteRange& range, bool only_writes = false) noexcept
        : walk_{range, only_writes} {}
    // As `Walk::visit_next`. `next_number`: greater than that of any use in the index.
    template <class Visit>
    bool visit_next(const UseIndex& in, std::uint64_t next_number, std::size_t max, Visit&& visit) {
      pass_begin_ = pass_begin_ == 0 ? next_number : pass_begin_;
      if (!walk_.visit_next(in, max, visit)) {
        return false;
      }
      walk_.restart(pass_begin_);
      return std::exchange(pass_begin_, next_number) == next_number;
    }

   private:
    Walk walk_;
    std::uint64_t pass_begin_ = 0;  // the next number when this pass began
  };
  // visit(node) for each use of a queue, by number; it may mark nodes as leaving.
  template <class Visit>
  void visit_queue(std::uint64_t key, Visit&& visit) const {
    visit_queue_below(queues_.root(), key, visit);
  }

 private:
  struct BytesTraits {
    static TreeLinks<Node>& links(Node& node) noexcept { return node.by_bytes; }
    static bool is_before(const Node& a, const Node& b) noexcept;
    static void update(Node& above) noexcept;
  };
  struct QueueTraits {
    static TreeLinks<Node>& links(Node& node) noexcept { return node.by_queue; }
    static bool is_before(const Node& a, const Node& b) noexcept;
    static void update(Node&) noexcept {}
  };
  struct List {
    void push_back(Node& added) noexcept;
    void erase(Node& node) noexcept;

    Node* first = nullptr;
    Node* last = nullptr;
    std::size_t count = 0;
  };

  template <class Visit>
  static void visit_queue_below(Node* top, std::uint64_t key, Visit& visit);

  Treap<Node, BytesTraits> bytes_;
  Treap<Node, QueueTraits> queues_;
  List active_;
  List leaving_;
  Chain spares_;
  std::size_t spare_count_ = 0;
};

template <class Visit>
void UseIndex::Walk::visit_below(Node* top, std::size_t& max, Visit& visit) {
  if (top == nullptr || max == 0 || top->newest < min_number_ ||
      (only_writes_ ? top->write_end : top->end) <= range_.begin) {
    return;
  }
  if (!is_past(*top)) {
    visit_below(top->by_bytes.left, max, visit);
    if (max == 0 || top->use.range.begin >= range_.end) {
      return;
    }
    if (top->use.range.overlaps(range_) && (top->use.writes || !only_writes_) &&
        top->number >= min_number_) {
      --max;
      last_begin_ = top->use.range.begin;
      last_number_ = top->number;
      visit(*top);
    }
  }
  visit_below(top->by_bytes.right, max, visit);
}

template <class Visit>
void UseIndex::visit_queue_below(Node* top, std::uint64_t key, Visit& visit) {
  if (top == nullptr) {
    return;
  }
  if (top->use.queue_serial >= key) {
    visit_queue_below(top->by_queue.left, key, visit);
  }
  if (top->use.queue_serial == key) {
    visit(*top);
  }
  if (top->use.queue_serial <= key) {
    visit_queue_below(top->by_queue.right, key, visit);
  }
}

}  // namespace isthmus
