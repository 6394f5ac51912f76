#pragma once
// The allocation record: what is known of one live piece of USM, and what keeps it alive.
//
// A record is counted: its buffer, its exports and the calls that use it now hold it. With the last
// reference the memory goes back to where it came from: a pool's device memory at once, in the
// order of the queue that all operations in flight on it are on; else not before these have ended.
// A thread of the library does it, and only who finds no memory waits for that.

#include <atomic>
#include <vector>

#include "backend/queue.hpp"
#include "core/owner.hpp"
#include "memory/memory_resource.hpp"
#include "memory/reaper.hpp"
#include "memory/use_list.hpp"
#include "memory/view_queues.hpp"

namespace isthmus {

class pool;
struct registry_entry;

class allocation final : public ref_counted, public reclaimable {
 public:
  struct facts {
    void* base = nullptr;
    std::size_t nbytes = 0;
    std::size_t alignment = 0;
    usm_kind kind = ISTHMUS_KIND_DEVICE;
    bool is_told = false;  // by who adopted it: its owner's may begin before and go on behind
  };

  // For `create` and `adopt`, which also make it known.
  allocation(queue& on, const facts& what) noexcept : what_{what}, on_{&on} {}

  // From a memory resource, or (null) from the driver. Errors as `context::allocate`. What a
  // resource cuts out of an allocation already known is that one's, as below.
  [[nodiscard]] static result<ref<allocation>> create(queue& on, const allocation_request& request,
                                                      memory_resource* from);
  // The same of memory that came from there just now, and goes back there where that fails.
  [[nodiscard]] static result<ref<allocation>> take_over(queue& on, const facts& what,
                                                         memory_resource* from);
  // The record of a block that a resource has handed out without one; the block's pointer stands
  // for a reference. Throws std::bad_alloc, and then the block is as it was.
  [[nodiscard]] static ref<allocation> record(queue& on, const facts& what, memory_resource& from);
  // Memory of somebody else's, which `keep` frees. Pre: checked by the caller. Where it lies in
  // `within`, an allocation already known, it is that one's: held by it, with its uses in common.
  [[nodiscard]] static result<ref<allocation>> adopt(queue& on, const facts& what, owner keep,
                                                     ref<allocation> within);

  // A caller's bare pointer to it stands for a reference, till he gives it back, behind all work on
  // `behind` (may be null) so far; false: there is none, since it was given back before or is held
  // otherwise.
  void hold_by_pointer() noexcept;
  [[nodiscard]] bool drop_pointer(queue* behind) noexcept;
  [[nodiscard]] bool came_from(const memory_resource& candidate) const noexcept {
    return from_.get() == &candidate;
  }

  // What the memory goes back to; null: the driver, or its owner.
  [[nodiscard]] memory_resource* from() const noexcept { return from_.get(); }

  [[nodiscard]] const facts& what() const noexcept { return what_; }
  [[nodiscard]] queue& on() const noexcept { return *on_; }
  [[nodiscard]] context& home() const noexcept;
  [[nodiscard]] device& where() const noexcept;
  [[nodiscard]] use_list& uses() noexcept { return within_ ? within_->uses() : uses_; }
  // What ranges of its uses count from.
  [[nodiscard]] const void* start_of_uses() const noexcept {
    return within_ ? within_->start_of_uses() : what_.base;
  }
  [[nodiscard]] bool host_can_touch() const noexcept { return what_.kind != ISTHMUS_KIND_DEVICE; }
  [[nodiscard]] bool contains(const void* pointer) const noexcept;
  [[nodiscard]] bool is_block() const noexcept { return is_block_; }
  // Of an allocation that the library knows too.
  [[nodiscard]] bool lies_within() const noexcept { return static_cast<bool>(within_); }
  // Of an allocation that lies within no other: whether others lie, or lay, in it.
  [[nodiscard]] bool has_parts() const noexcept {
    return has_parts_.load(std::memory_order_relaxed);
  }
  // A resource cuts it into blocks: it is nobody's own block from here on.
  void become_chunk() noexcept;
  [[nodiscard]] bool is_chunk() const noexcept { return is_chunk_.load(std::memory_order_relaxed); }
  // Whether any allocation of the process lies, or lay, in another.
  [[nodiscard]] static bool any_within() noexcept;

  // While all of these are false nothing can be pending on it: operations of ours, and of others on
  // queues that were lent, its own and those of views.
  struct signs {
    const std::atomic<bool>* operations;
    const std::atomic<bool>* own_queue;
    const std::atomic<bool>* other_queues;
  };
  [[nodiscard]] signs signs_of_work() const noexcept {
    return within_ ? within_->signs_of_work()
                   : signs{&uses_.may_run(), &on_->lent_flag(), &views_.some()};
  }

  // Views of it put operations on `on` too, from here to there. Work that we do not know may run on
  // there when the view ends: it is waited for as an operation of ours.
  void view_began(queue& on);
  void view_ended(queue& on) noexcept;
  // Whether the handle of a queue that its operations go to was lent, so that work which we do not
  // know may use it.
  [[nodiscard]] bool lent() noexcept;
  // Adds the ends of what is unfinished on those queues now, but for `but` (may be null). A device
  // that was lost has nothing unfinished.
  [[nodiscard]] result<void> unfinished_on_lent(const queue* but, std::vector<ref<event>>& out);

  // All that is on the queue now may use the memory; waits for nothing. Errors as
  // `queue::unfinished`, but for a device that was lost, where nothing runs; throws std::bad_alloc.
  [[nodiscard]] result<void> follow(queue& on);

  // The same of memory that was handed out just now, by a pool that may have had it back before
  // that work has ended. Pre: nobody else has the record yet.
  [[nodiscard]] result<void> inherit(queue& on);

  // The same of a range of its uses, where who has the memory says so: how that work ends is their
  // concern. Errors as `queue::fence`.
  [[nodiscard]] result<void> note_use(queue& on, const byte_range& where);

  // As `release`, of a reference that is likely the last: fewer exchanges where it is one of a
  // pool's block that was in no operation.
  void release_last() noexcept;

  // Without a reference: what is next for memory that nobody refers to.
  void let_go() noexcept override;
  [[nodiscard]] ref<queue> only_user() noexcept override;
  [[nodiscard]] bool goes_on_demand() noexcept override;
  [[nodiscard]] std::size_t nbytes() const noexcept override { return what_.nbytes; }
  void let_go_unused() noexcept override;
  void put_off() noexcept override { end_being_late(); }
  void be_expected() noexcept override { begin_to_be_late(); }

 private:
  friend class registry;
  ~allocation() override;
  void last_reference_gone() noexcept override;
  [[nodiscard]] std::vector<ref<queue>> lent_queues();
  // The memory stays the caller's where it fails.
  [[nodiscard]] static result<ref<allocation>> record_new(queue& on, const facts& what,
                                                          memory_resource* from) noexcept;
  void enter(memory_resource* from);
  void lie_within(ref<allocation> outer);
  void note_part() noexcept;
  [[nodiscard]] result<void> lie_within_known();
  [[nodiscard]] bool outlasts_view(queue& on);
  [[nodiscard]] bool follows(queue& on) noexcept;
  [[nodiscard]] static result<void> unfinished_on(queue& on, std::vector<ref<event>>& out);
  [[nodiscard]] result<std::vector<ref<event>>> still_running();
  // Whether its owner put no operation on it that we know, and none that we do not know can be.
  [[nodiscard]] bool never_used() noexcept {
    return !within_ && !uses_.ever_used() && !views_.any() && !freed_behind_ && !on_->lent();
  }
  // Whether all that comes next on its queue comes after the work it was handed out under, if any.
  // The host keeps to no queue's order.
  [[nodiscard]] bool inherits_in_order() const noexcept {
    return !uses_.inherits() || (!host_can_touch() && on_->in_one_order() && !on_->holds_back());
  }
  // Whether what was is known to have ended. Pre: nobody refers to it.
  [[nodiscard]] bool nothing_runs() noexcept {
    return !within_ && uses_.quiet() && !lent() && !freed_behind_;
  }
  // Whether it has to be asked for what runs on it, by another thread than whoever lets go of it.
  [[nodiscard]] bool is_asked_elsewhere() noexcept {
    return in_continuation() || (lent() && (on_->asking_may_block() || is_of_queue_on_demand()));
  }
  [[nodiscard]] bool is_of_queue_on_demand() noexcept;
  [[nodiscard]] bool end_unused_block() noexcept;
  // The queue in whose order the memory may go back now; null: none.
  [[nodiscard]] ref<queue> order_of_free() noexcept;
  [[nodiscard]] ref<queue> queue_known_as(std::uint64_t serial) noexcept;
  // False where it goes later.
  bool end() noexcept;
  bool retire();
  // To the resource, whose memory goes back later.
  void notify_freed() noexcept;
  // Who finds no memory in its pool may wait for it, till it is there or nobody can tell when.
  void begin_to_be_late() noexcept;
  void end_being_late() noexcept;
  // That the memory came from, under whatever adaptors; null: from none.
  [[nodiscard]] pool* pool_below() const noexcept;
  [[nodiscard]] std::int64_t late_bytes() const noexcept {
    return static_cast<std::int64_t>(what_.nbytes);
  }
  // Nothing uses it any more but what is on `behind` (may be null).
  static void give_back(const facts& what, queue& on, memory_resource* from,
                        queue* behind) noexcept;
  void reclaim(queue* behind) noexcept;
  void reclaim() noexcept;
  void reclaim_behind(queue& on) noexcept;

  facts what_;
  ref<queue> on_;
  device* elsewhere_ = nullptr;  // than on the queue's device
  ref<memory_resource> from_;
  owner keep_;
  // Until it is in the registry its maker still holds the memory.
  enum class origin { unregistered, ours, foreign } origin_ = origin::unregistered;
  ref<allocation> within_;
  use_list uses_;
  view_queues views_;
  std::atomic<bool> held_by_pointer_{false};
  // Null: all that was on it when its pointer was given back is among the uses.
  ref<queue> freed_behind_;
  bool unused_ = false;   // no operation is on it any more
  bool is_late_ = false;  // counted by its pool, or else by its device
  std::atomic<bool> has_parts_{false};
  std::atomic<bool> is_chunk_{false};
  bool is_block_ = false;            // of a pool, and lies within no other; constant once known
  std::uint64_t hashed_ = 0;         // the registry's, as the next
  registry_entry* entry_ = nullptr;  // null: not in it
};

}  // namespace isthmus
