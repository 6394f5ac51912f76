#pragma once
// The uses of a use_list, found by their bytes and by their queue in logarithmic time.
//
// By bytes: a tree sorted by the first byte, of which every node knows the furthest end below it,
// and the furthest of a write: what overlaps a range is found without a look at the rest, and for
// a read writes alone. By queue: a tree sorted by queue. A use that is to leave stays in both until
// `drop`, which releases events and so must not run everywhere.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "backend/event.hpp"
#include "core/chain.hpp"
#include "core/range_set.hpp"
#include "core/treap.hpp"

namespace isthmus {

class device;

struct use {
  // The serial number of a queue: its address may be another queue's while an operation of it still
  // runs. 0: of no queue of ours, an event that the caller recorded.
  std::uint64_t on = 0;
  byte_range range;
  bool writes = false;
  // Of the memory's last owner: it comes first, and its outcome does not matter here.
  bool is_of_others = false;
  // It was submitted after all that conflicts with it and was in the list when it began: its end
  // implies theirs.
  bool follows_conflicts = false;
  // Of the queue. Operations of one device end together if it is lost, whatever they wait for;
  // those of another device or context go on.
  const device* where = nullptr;
  const context* home = nullptr;
};

struct pending_use {
  use what;
  ref<event> ended;
  std::uint64_t number = 0;  // none has another's, but for those of no list: 0
  unsigned joins = 0;        // how often what it stands for was joined
};

// Not safe for threads. Only `chain` releases memory or events: it is to end outside of locks.
class use_index {
 public:
  struct node : pending_use {
    std::uint32_t priority = 0;
    bool leaves = false;        // it has ended, or another use stands for it
    std::size_t end = 0;        // the furthest in the tree below and here
    std::size_t write_end = 0;  // of a write
    tree_links<node> by_bytes{};
    tree_links<node> by_queue{};
    node* next = nullptr;  // in a list, as the next
    node* previous = nullptr;
  };
  using chain = isthmus::chain<node>;

  use_index() noexcept = default;
  use_index(const use_index&) = delete;
  use_index& operator=(const use_index&) = delete;
  ~use_index();

  // Nodes that `insert` takes, each for one use.
  [[nodiscard]] std::size_t spare() const noexcept { return spare_count_; }
  void add_spare(std::unique_ptr<node> made) noexcept;
  // Pre: there is a spare one; no other has its number.
  void insert(pending_use added) noexcept;
  void remove(node& gone, chain& into) noexcept;

  // Those that leave are among them until they are dropped.
  [[nodiscard]] std::size_t size() const noexcept { return staying_.count + leaving_.count; }
  // Pre: there is one alone.
  [[nodiscard]] const pending_use& only() const noexcept { return *bytes_.root(); }
  // `with` is what was there afterwards.
  void replace_only(pending_use& with) noexcept;

  // Of those that do not leave; null behind the last.
  [[nodiscard]] node* first() const noexcept { return staying_.first; }
  [[nodiscard]] static node* next(const node& of) noexcept { return of.next; }
  void let_leave(node& which) noexcept;
  // Lets those leave that have ended, from the first on, up to one that has not. Whether there is
  // one.
  [[nodiscard]] bool any_pending() noexcept;
  // The same of so many of the first; those that stay are the last then.
  void look_at(std::size_t count) noexcept;
  // Removes so many of those that leave. False if some are left.
  bool drop(std::size_t most, chain& into) noexcept;

  // Null where it has left.
  [[nodiscard]] node* find(const pending_use& known) const noexcept;
  // visit(node) for each that overlaps the range, leaving or not, by the first byte and number; for
  // writes alone if `only_writes`. It may let nodes leave.
  template <class Visit>
  void visit_overlapping(const byte_range& range, bool only_writes, Visit&& visit) const {
    visit_below(bytes_.root(), range, only_writes, visit);
  }
  // The same for each of a queue, by number.
  template <class Visit>
  void visit_queue(std::uint64_t on, Visit&& visit) const {
    visit_queue_below(queues_.root(), on, visit);
  }

 private:
  struct bytes_traits {
    static tree_links<node>& links(node& of) noexcept { return of.by_bytes; }
    static bool is_before(const node& a, const node& b) noexcept;
    static void update(node& above) noexcept;
  };
  struct queue_traits {
    static tree_links<node>& links(node& of) noexcept { return of.by_queue; }
    static bool is_before(const node& a, const node& b) noexcept;
    static void update(node&) noexcept {}
  };
  struct list {
    void push_back(node& added) noexcept;
    void erase(node& gone) noexcept;

    node* first = nullptr;
    node* last = nullptr;
    std::size_t count = 0;
  };

  template <class Visit>
  static void visit_below(node* top, const byte_range& range, bool only_writes, Visit& visit);
  template <class Visit>
  static void visit_queue_below(node* top, std::uint64_t on, Visit& visit);

  treap<node, bytes_traits> bytes_;
  treap<node, queue_traits> queues_;
  list staying_;
  list leaving_;
  chain spares_;
  std::size_t spare_count_ = 0;
};

template <class Visit>
void use_index::visit_below(node* top, const byte_range& range, bool only_writes, Visit& visit) {
  if (top == nullptr || (only_writes ? top->write_end : top->end) <= range.begin) {
    return;
  }
  visit_below(top->by_bytes.left, range, only_writes, visit);
  if (top->what.range.begin >= range.end) {
    return;
  }
  if (top->what.range.overlaps(range) && (top->what.writes || !only_writes)) {
    visit(*top);
  }
  visit_below(top->by_bytes.right, range, only_writes, visit);
}

template <class Visit>
void use_index::visit_queue_below(node* top, std::uint64_t on, Visit& visit) {
  if (top == nullptr) {
    return;
  }
  if (top->what.on >= on) {
    visit_queue_below(top->by_queue.left, on, visit);
  }
  if (top->what.on == on) {
    visit(*top);
  }
  if (top->what.on <= on) {
    visit_queue_below(top->by_queue.right, on, visit);
  }
}

}  // namespace isthmus
