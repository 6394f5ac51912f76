// SPDX-License-Identifier: Apache-2.0
#pragma once
// The allocation record: the metadata of one live USM allocation, and the references that keep the
// allocation alive.
//
// Records are reference-counted. The buffer, its exports and the calls that currently use the
// memory each hold a reference. When the last reference is dropped, the memory is returned to its
// origin. Device memory of a pool is returned at once if all pending operations on it are on a
// single queue: the free is then ordered on that queue. Other memory with pending operations is
// returned by a library thread after they have completed. A free never waits for that; an
// allocation waits only if it would fail otherwise.
//
// Thread-safe, except where a function states a precondition. Relies on the registry
// (registry.hpp), the use list (use_list.hpp) and deferred release (deferred_release.hpp).
// allocation_creation.hpp creates records; allocation_end.cpp releases their memory.

#include <atomic>
#include <vector>

#include "backend/queue.hpp"
#include "core/expects.hpp"
#include "core/owner.hpp"
#include "memory/base/deferred_release.hpp"
#include "memory/base/memory_resource.hpp"
#include "memory/records/registered_allocation.hpp"
#include "memory/records/use_list.hpp"
#include "memory/records/view_queues.hpp"

namespace isthmus {

class Pool;

class Allocation final : public RegisteredAllocation, public Releasable {
 public:
  // Where the memory of a new record lies.
  struct Placement {
    MemoryResource* resource = nullptr;  // that it is returned to; null: the driver
    Device* device = nullptr;            // null: the queue's
    Pool* pool = nullptr;                // whose block it is; null: it is no block of a pool
    Allocation* outer = nullptr;         // that it lies in, whose uses it shares; null: none
  };

  // Called only by the static functions below, which register the record where look-ups need it.
  Allocation(Queue& queue, const Facts& facts) noexcept : RegisteredAllocation{queue, facts} {}

  // Creates the record of memory that was just allocated; `create_allocation` allocates as well. On
  // failure the memory still belongs to the caller. Throws std::bad_alloc.
  [[nodiscard]] static Result<Ref<Allocation>> record_new(Queue& queue, const Facts& facts,
                                                          const Placement& placement);
  // Creates the record of a block that a resource returned as a bare pointer, without a record. The
  // pointer then holds a reference to the record. Throws std::bad_alloc, in which case the block is
  // unchanged.
  [[nodiscard]] static Ref<Allocation> record_block(Queue& queue, const Facts& facts,
                                                    MemoryResource& resource);
  // Adopts memory of another library, which `owner` frees. The caller has validated the
  // arguments. If the memory lies in `outer`, an allocation with a record, the new record keeps
  // `outer` alive and shares its uses.
  [[nodiscard]] static Result<Ref<Allocation>> adopt(Queue& queue, const Facts& facts, Owner owner,
                                                     const Ref<Allocation>& outer);

  // Adds a reference that the caller's bare pointer holds. `drop_pointer` drops that reference, and
  // records all work submitted so far to `after` (may be null) as a use of the memory. It returns
  // false if there is no such reference, because the pointer was freed before or the memory has
  // another owner.
  void hold_by_pointer() noexcept;
  [[nodiscard]] bool drop_pointer(Queue* after) noexcept;
  // Drops the reference of the bare pointer, as a free by the caller does. INVALID_ARGUMENT, and
  // nothing is done, if `pointer` lies inside the memory, or no pointer holds a reference.
  Result<void> deallocate(const void* pointer, Queue* after) noexcept;

  [[nodiscard]] UseList& uses() noexcept { return outer_ ? outer_->uses() : uses_; }
  // The address to which the ranges in `uses()` are relative.
  [[nodiscard]] const void* start_of_uses() const noexcept {
    return outer_ ? outer_->start_of_uses() : facts_.base;
  }
  [[nodiscard]] bool host_can_touch() const noexcept { return facts_.kind != ISTHMUS_KIND_DEVICE; }
  // Marks the allocation as memory that a resource sub-allocates. It then no longer counts as a
  // block itself.
  void mark_as_chunk() noexcept;
  // Whether any allocation of the process lies, or once lay, in another one.
  [[nodiscard]] static bool any_nested() noexcept;

  // While all of these flags are false, no work is pending on the memory. No operation of the
  // library is pending, and there is no external work, since neither the allocation's queue nor a
  // view's queue was exported.
  struct ActivityFlags {
    const std::atomic<bool>* operations;
    const std::atomic<bool>* own_queue;
    const std::atomic<bool>* other_queues;
  };
  [[nodiscard]] ActivityFlags activity_flags() const noexcept {
    return outer_ ? outer_->activity_flags()
                  : ActivityFlags{&uses_.may_run(), &queue_->exported_flag(), &views_.any_flag()};
  }

  // Between these two calls, a view of the memory may submit operations to `queue`. `end_view` adds
  // external work that still runs on that queue to the uses.
  void begin_view(Queue& queue);
  void end_view(Queue& queue) noexcept;
  // Whether external work may use the memory, because the handle of its queue or of a view's queue
  // was exported.
  [[nodiscard]] bool has_exported_queue() noexcept;
  // Appends events for the unfinished work on the exported queues, except on `except` (may be
  // null). A lost device has no unfinished work.
  [[nodiscard]] Result<void> unfinished_on_exported(const Queue* except,
                                                    std::vector<Ref<Event>>& out);

  // Records all work that is currently on the queue as a use of the memory. Does not wait. Fails as
  // `Queue::unfinished` does, but succeeds for a lost device, which runs nothing. Throws
  // std::bad_alloc.
  [[nodiscard]] Result<void> record_queue_work(Queue& queue);

  // As `record_queue_work`, for memory that a pool has just allocated. Work of the previous owner
  // on that queue may still use the memory. Called before another thread can find the record.
  [[nodiscard]] Result<void> inherit(Queue& queue);

  // As `record_queue_work`, for external work that the caller declares, and for one range of the
  // memory, relative to `start_of_uses()`. Failures of that work are not reported to later
  // operations. Fails as `Queue::fence` does.
  [[nodiscard]] Result<void> record_use(Queue& queue, const ByteRange& range);

  // As `release`, for a reference that is probably the last one. Needs fewer atomic operations for
  // a pool's block that no operation has used.
  void release_last() noexcept;

  // Returns memory without a record to `resource`, or to the driver if `resource` is null.
  // Only work on `after`, which may be null, uses the memory.
  static void return_memory(const Facts& facts, Queue& queue, MemoryResource* resource,
                            Queue* after) noexcept;

  // The functions below are called after the last reference was dropped. They release the memory.
  void release_now() noexcept override;
  [[nodiscard]] Ref<Queue> sole_queue() noexcept override;
  [[nodiscard]] bool is_released_on_demand() noexcept override;
  [[nodiscard]] std::size_t nbytes() const noexcept override { return facts_.nbytes; }
  void release_idle() noexcept override;
  void on_deferred() noexcept override { end_pending_release(); }
  void on_scheduled() noexcept override { begin_pending_release(); }

 private:
  ~Allocation() override;
  void on_last_release() noexcept override;
  [[nodiscard]] std::vector<Ref<Queue>> exported_queues();
  void register_with(MemoryResource* resource);
  void set_outer(Allocation& outer);
  void mark_as_divided() noexcept;
  [[nodiscard]] bool record_view_work(Queue& queue);
  [[nodiscard]] bool try_record_queue_work(Queue& queue) noexcept;
  [[nodiscard]] static Result<void> unfinished_on(Queue& queue, std::vector<Ref<Event>>& out);
  [[nodiscard]] Result<std::vector<Ref<Event>>> running_events();
  // Whether the owner submitted no operation that uses the memory, and no external work can use it.
  [[nodiscard]] bool never_used() noexcept {
    return !outer_ && !uses_.ever_used() && !views_.any() && !freed_after_ &&
           !queue_->is_exported();
  }
  // Whether all operations submitted to the queue from now on run after the inherited work
  // (`inherit`), if any. False for inherited work on memory that the host can access, since a queue
  // does not order host accesses.
  [[nodiscard]] bool inherits_in_order() const noexcept {
    return !uses_.inherits() ||
           (!host_can_touch() && queue_->is_in_order() && !queue_->has_deferred_operations());
  }
  // Whether all uses of the memory are known to have completed.
  [[nodiscard]] bool is_idle() noexcept {
    ISTHMUS_EXPECTS(references() == 0);
    return !outer_ && uses_.is_known_idle() && !has_exported_queue() && !freed_after_;
  }
  // Whether a library thread must determine the uses, because the thread that dropped the last
  // reference must not query the queues.
  [[nodiscard]] bool needs_library_thread() noexcept {
    return in_continuation() ||
           (has_exported_queue() && (queue_->traits().query_may_block || is_queried_on_demand()));
  }
  [[nodiscard]] bool is_queried_on_demand() noexcept;
  [[nodiscard]] bool end_unused_block() noexcept;
  // The queue in whose order the memory can be freed now; null if there is none.
  [[nodiscard]] Ref<Queue> ordering_queue() noexcept;
  [[nodiscard]] Ref<Queue> find_queue(std::uint64_t serial) noexcept;
  // Returns false if the memory is released later.
  bool release_or_defer() noexcept;
  bool release_after_uses();
  // Notifies the resource of the free. Called for memory that is released later.
  void notify_freed() noexcept;
  // Between these calls the memory counts as pending release, so that an allocation that would fail
  // otherwise may wait for it. Memory whose time of release is unknown is not counted.
  void begin_pending_release() noexcept;
  void end_pending_release() noexcept;
  // The pool at the end of the chain of upstreams from which the memory was allocated; null if that
  // resource is not a pool.
  [[nodiscard]] Pool* pool_below() const noexcept;
  [[nodiscard]] std::int64_t pending_bytes() const noexcept {
    return static_cast<std::int64_t>(facts_.nbytes);
  }
  void destroy(Queue* after) noexcept;
  void destroy() noexcept;
  void destroy_after_queue(Queue& queue) noexcept;

  Owner owner_;
  // While `unregistered`, the memory still belongs to the creator of the record.
  enum class Origin { unregistered, internal, foreign } origin_ = Origin::unregistered;
  Ref<Allocation> outer_;
  UseList uses_;
  ViewQueues views_;
  std::atomic<bool> held_by_pointer_{false};
  // The queue that was passed to `drop_pointer`, if its work could not be added to the uses; else
  // null.
  Ref<Queue> freed_after_;
  bool unused_ = false;      // no operation uses the memory any more
  bool is_pending_ = false;  // counted as pending release, by its pool or else by its device
};

// Every RegisteredAllocation is an Allocation.
[[nodiscard]] inline Ref<Allocation> allocation_of(Ref<RegisteredAllocation> record) noexcept {
  return Ref<Allocation>::adopt(static_cast<Allocation*>(record.detach()));
}

}  // namespace isthmus
