#pragma once
// The uses of a use_list, found by their bytes and by their queue in logarithmic time.
//
// By bytes: a tree sorted by the first byte, of which every node knows the furthest end below it,
// the furthest of a write, and the newest number: what overlaps a range is found without a look at
// the rest, for a read writes alone, and what was added lately without a look at the older ones. By
// queue: a tree sorted by queue. A use that is to leave stays in both until `drop`, which releases
// events and so must not run everywhere.
//
// Nothing here visits more than so many uses as the caller allows, so that a lock around it is held
// for that long only, but `visit_queue`, of whose uses there are few (use_list.hpp).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

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
    std::uint64_t newest = 0;   // the greatest number there
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

  [[nodiscard]] bool all_leave() const noexcept { return staying_.first == nullptr; }
  void let_leave(node& which) noexcept;
  // Lets those leave that have ended, from the first on, up to one that has not or so many. False
  // where the next one has ended too.
  [[nodiscard]] bool let_first_leave(std::size_t most) noexcept;
  // The same of all that have ended of so many of the first; those that stay are the last then.
  void look_at(std::size_t count) noexcept;
  // Removes so many of those that leave. False if some are left.
  bool drop(std::size_t most, chain& into) noexcept;

  // Null where it has left.
  [[nodiscard]] node* find(const pending_use& known) const noexcept;
  // What overlaps a range, leaving or not, by the first byte and number; writes alone if
  // `only_writes`. It keeps its place by that order, whatever comes and leaves between two visits.
  class walk {
   public:
    explicit walk(const byte_range& range, bool only_writes = false) noexcept
        : range_{range}, only_writes_{only_writes} {}
    // visit(node) for so many of the next ones; it may let nodes leave. Whether they were the last.
    template <class Visit>
    bool visit_next(const use_index& in, std::size_t most, Visit&& visit) {
      visit_below(in.bytes_.root(), most, visit);
      return most != 0;
    }
    // Once more, those alone that have this number or a greater one.
    void restart(std::uint64_t from) noexcept {
      from_ = from;
      last_begin_ = 0;
      last_number_ = 0;
    }

   private:
    [[nodiscard]] bool is_past(const node& which) const noexcept {
      return which.what.range.begin == last_begin_ ? which.number <= last_number_
                                                   : which.what.range.begin < last_begin_;
    }
    template <class Visit>
    void visit_below(node* top, std::size_t& most, Visit& visit);

    byte_range range_;
    bool only_writes_;
    std::uint64_t from_ = 0;
    std::size_t last_begin_ = 0;  // of what was visited last
    std::uint64_t last_number_ = 0;
  };
  // The same where what leaves between two visits must not be missed: what stands for it then is
  // newer, and may have its place before what was visited already. So what was added meanwhile is
  // visited afterwards, and what was added meanwhile to that, until nothing was.
  class scan {
   public:
    explicit scan(const byte_range& range, bool only_writes = false) noexcept
        : walk_{range, only_writes} {}
    // As `walk::visit_next`. `next_number`: greater than that of any use there.
    template <class Visit>
    bool visit_next(const use_index& in, std::uint64_t next_number, std::size_t most,
                    Visit&& visit) {
      began_at_ = began_at_ == 0 ? next_number : began_at_;
      if (!walk_.visit_next(in, most, visit)) {
        return false;
      }
      walk_.restart(began_at_);
      return std::exchange(began_at_, next_number) == next_number;
    }

   private:
    walk walk_;
    std::uint64_t began_at_ = 0;  // what the next number was then
  };
  // visit(node) for each of a queue, by number; it may let nodes leave.
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
  static void visit_queue_below(node* top, std::uint64_t on, Visit& visit);

  treap<node, bytes_traits> bytes_;
  treap<node, queue_traits> queues_;
  list staying_;
  list leaving_;
  chain spares_;
  std::size_t spare_count_ = 0;
};

template <class Visit>
void use_index::walk::visit_below(node* top, std::size_t& most, Visit& visit) {
  if (top == nullptr || most == 0 || top->newest < from_ ||
      (only_writes_ ? top->write_end : top->end) <= range_.begin) {
    return;
  }
  if (!is_past(*top)) {
    visit_below(top->by_bytes.left, most, visit);
    if (most == 0 || top->what.range.begin >= range_.end) {
      return;
    }
    if (top->what.range.overlaps(range_) && (top->what.writes || !only_writes_) &&
        top->number >= from_) {
      --most;
      last_begin_ = top->what.range.begin;
      last_number_ = top->number;
      visit(*top);
    }
  }
  visit_below(top->by_bytes.right, most, visit);
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
