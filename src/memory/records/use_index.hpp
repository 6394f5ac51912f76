// SPDX-License-Identifier: Apache-2.0
#pragma once
// The uses of a `UseList`, found by their bytes and by their queue in logarithmic time.
//
// By bytes: a tree sorted by the first byte, in which every node stores the greatest end in its
// subtree, the greatest end of a write, and the newest number. So the uses that overlap a range are
// found without visiting the rest, for a read only writes are visited, and recent uses are found
// without visiting older ones. By queue: a tree sorted by queue. A use that is marked as leaving
// remains in both trees until `drop`, whose caller then releases the events; this is not allowed
// everywhere.
//
// No function visits more uses than the caller allows, so that the caller can limit the time for
// which it holds a lock. The exception is `visit_queue`, since a queue has few uses (use_list.hpp).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "backend/event.hpp"
#include "core/chain.hpp"
#include "core/expects.hpp"
#include "core/range_set.hpp"
#include "core/treap.hpp"

namespace isthmus {

class Device;

struct Use {
  // The serial number of the queue. Its address does not identify it, since another queue may reuse
  // the address while an operation still runs. 0: an event that the caller recorded, of no queue of
  // the library.
  std::uint64_t queue_serial = 0;
  ByteRange range;
  bool writes = false;
  // The use is by the memory's previous owner: operations wait for it, but its outcome does not
  // affect them.
  bool is_previous_owners = false;
  // The operation was submitted after all conflicting uses that were in the list when it began, so
  // its end implies theirs.
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
  unsigned joins = 0;        // how often the uses that it represents were joined
};

// Not thread-safe. Only `Chain` releases memory or events: destroy it outside of locks.
class UseIndex {
 public:
  struct Node : PendingUse {
    std::uint32_t priority = 0;
    bool is_leaving = false;    // it has ended, or another use represents it
    std::size_t end = 0;        // the greatest in this subtree
    std::size_t write_end = 0;  // the greatest of a write
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
  ~UseIndex() {
    if (size() != 0) [[unlikely]] {  // most allocations end unused
      clear();
    }
  }

  // The number of spare nodes, of which `insert` takes one for each use.
  [[nodiscard]] std::size_t spare() const noexcept { return spare_count_; }
  void add_spare(std::unique_ptr<Node> node) noexcept;
  void insert(PendingUse added) noexcept;
  void remove(Node& node, Chain& out) noexcept;

  // Includes leaving uses, until they are dropped.
  [[nodiscard]] std::size_t size() const noexcept { return active_.count + leaving_.count; }
  // The only use. `replace_only` exchanges it with `use`.
  [[nodiscard]] const PendingUse& only() const noexcept {
    ISTHMUS_EXPECTS(size() == 1, size());
    return *bytes_.root();
  }
  void replace_only(PendingUse& use) noexcept;

  [[nodiscard]] bool are_all_leaving() const noexcept { return active_.first == nullptr; }
  void mark_leaving(Node& node) noexcept;
  // Marks ended uses as leaving, from the first on, until one has not ended or `max` are marked.
  // False if the next one has ended too.
  [[nodiscard]] bool mark_first_ended(std::size_t max) noexcept;
  // Examines the first `count` uses: marks those that have ended as leaving, and moves the others
  // to the end.
  void examine(std::size_t count) noexcept;
  // Removes at most `max` leaving uses. False if any are left.
  bool drop(std::size_t max, Chain& out) noexcept;

  // The node of the use; null if it was removed.
  [[nodiscard]] Node* find(const PendingUse& use) const noexcept;
  // Visits the uses that overlap a range, including leaving ones, in the order of first byte and
  // number; only writes if `only_writes`. Its position in that order remains valid, whatever is
  // added and removed between two calls.
  class Walk {
   public:
    explicit Walk(const ByteRange& range, bool only_writes = false) noexcept
        : range_{range}, only_writes_{only_writes} {}
    // Calls visit(node) for at most `max` of the next uses; `visit` may mark nodes as leaving.
    // Returns whether they were the last.
    template <class Visit>
    bool visit_next(const UseIndex& index, std::size_t max, Visit&& visit) {
      visit_below(index.bytes_.root(), max, visit);
      return max != 0;
    }
    // Restarts the walk, for uses whose number is at least `first`.
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
  // A walk that does not miss uses that are replaced between two calls: the use that then
  // represents them is newer, and may precede the uses visited so far. So uses that were added
  // meanwhile are visited in another pass, and uses added during that pass in a further one, until
  // none are added.
  class Scan {
   public:
    explicit Scan(const ByteRange& range, bool only_writes = false) noexcept
        : walk_{range, only_writes} {}
    // As `Walk::visit_next`. `next_number`: greater than that of any use in the index.
    template <class Visit>
    bool visit_next(const UseIndex& index, std::uint64_t next_number, std::size_t max,
                    Visit&& visit) {
      pass_begin_ = pass_begin_ == 0 ? next_number : pass_begin_;
      if (!walk_.visit_next(index, max, visit)) {
        return false;
      }
      walk_.restart(pass_begin_);
      return std::exchange(pass_begin_, next_number) == next_number;
    }

   private:
    Walk walk_;
    std::uint64_t pass_begin_ = 0;  // the next number when this pass began
  };
  // Calls visit(node) for each use of a queue, by number; `visit` may mark nodes as leaving.
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

  void clear() noexcept;
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
