// SPDX-License-Identifier: Apache-2.0
#pragma once
// The allocation record: what the library knows about one live USM allocation, and what keeps it
// alive.
//
// Records are reference-counted. The buffer, its exports and the calls that currently use the
// memory each hold a reference. When the last reference is dropped, the memory is returned to its
// origin. Device memory of a pool is returned at once if all pending operations on it are on a
// single queue: the free is then ordered on that queue. All other memory is returned only after
// these operations have completed. A library thread does that, and no free waits for it; only an
// allocation that finds no memory does.
//
// Thread-safe, except where a function states a precondition. Relies on the registry
// (registry.hpp), the use list (use_list.hpp) and deferred release (deferred_release.hpp).

#include <atomic>
#include <vector>

#include "backend/queue.hpp"
#include "core/owner.hpp"
#include "memory/deferred_release.hpp"
#include "memory/memory_resource.hpp"
#include "memory/use_list.hpp"
#include "memory/view_queues.hpp"

namespace isthmus {

class Pool;
struct RegistryEntry;

class Allocation final : public RefCounted, public Releasable {
 public:
  struct Facts {
    void* base = nullptr;
    std::size_t nbytes = 0;
    std::size_t alignment = 0;
    UsmKind kind = ISTHMUS_KIND_DEVICE;
    // The extent was stated by the adopter: the owner's memory may begin before it and extend past
    // it.
    bool is_stated = false;
  };

  // For `create` and `adopt`, which also register the record.
  Allocation(Queue& queue, const Facts& facts) noexcept : facts_{facts}, queue_{&queue} {}

  // Allocates from a memory resource, or from the driver if `resource` is null. Errors as
  // `Context::allocate`. If a resource cuts the block out of an allocation that has a record, the
  // new record lies within that one, as in `adopt`.
  [[nodiscard]] static Result<Ref<Allocation>> create(Queue& queue,
                                                      const AllocationRequest& request,
                                                      MemoryResource* resource);
  // As `create`, for memory that was just allocated from `resource`. On failure the memory is
  // returned to `resource`.
  [[nodiscard]] static Result<Ref<Allocation>> take_ownership(Queue& queue, const Facts& facts,
                                                              MemoryResource* resource);
  // Creates the record of a block that a resource handed out without one. The block's bare pointer
  // then holds a reference. Throws std::bad_alloc; the block is then unchanged.
  [[nodiscard]] static Ref<Allocation> record(Queue& queue, const Facts& facts,
                                              MemoryResource& resource);
  // Adopts memory of another library, which `owner` frees. Precondition: the caller has validated
  // the arguments. If the memory lies in `outer`, an allocation with a record, the new record
  // keeps `outer` alive and shares its uses.
  [[nodiscard]] static Result<Ref<Allocation>> adopt(Queue& queue, const Facts& facts, Owner owner,
                                                     Ref<Allocation> outer);

  // Makes the caller's bare pointer hold a reference. `drop_pointer` drops it; all work submitted
  // to `after` so far (may be null) then counts as a use of the memory. It returns false if no
  // pointer holds a reference: it was freed before, or something else owns the memory.
  void hold_by_pointer() noexcept;
  [[nodiscard]] bool drop_pointer(Queue* after) noexcept;
  [[nodiscard]] bool came_from(const MemoryResource& candidate) const noexcept {
    return resource_.get() == &candidate;
  }

  // The resource that the memory is returned to; null: the driver, or the owner of adopted memory.
  [[nodiscard]] MemoryResource* resource() const noexcept { return resource_.get(); }

  [[nodiscard]] const Facts& facts() const noexcept { return facts_; }
  [[nodiscard]] Queue& queue() const noexcept { return *queue_; }
  [[nodiscard]] Context& context() const noexcept;
  [[nodiscard]] Device& device() const noexcept;
  [[nodiscard]] UseList& uses() noexcept { return outer_ ? outer_->uses() : uses_; }
  // The address that the ranges of its uses are relative to.
  [[nodiscard]] const void* start_of_uses() const noexcept {
    return outer_ ? outer_->start_of_uses() : facts_.base;
  }
  [[nodiscard]] bool host_can_touch() const noexcept { return facts_.kind != ISTHMUS_KIND_DEVICE; }
  [[nodiscard]] bool contains(const void* pointer) const noexcept;
  [[nodiscard]] bool is_block() const noexcept { return is_block_; }
  // Whether it lies in another allocation that has a record.
  [[nodiscard]] bool is_nested() const noexcept { return static_cast<bool>(outer_); }
  // Whether other allocations lie in it, now or earlier. Only for an allocation that lies in no
  // other.
  [[nodiscard]] bool is_divided() const noexcept {
    return is_divided_.load(std::memory_order_relaxed);
  }
  // Marks it as cut into blocks by a resource. From here on it is not a block of its own.
  void mark_as_chunk() noexcept;
  [[nodiscard]] bool is_chunk() const noexcept { return is_chunk_.load(std::memory_order_relaxed); }
  // Whether any allocation of the process lies in another one, now or earlier.
  [[nodiscard]] static bool any_nested() noexcept;

  // While all of these are false nothing can be pending on the memory: no operation of the library,
  // and no external work on an exported queue, be it the allocation's own queue or one of a view.
  struct Signs {
    const std::atomic<bool>* operations;
    const std::atomic<bool>* own_queue;
    const std::atomic<bool>* other_queues;
  };
  [[nodiscard]] Signs activity_flags() const noexcept {
    return outer_ ? outer_->activity_flags()
                  : Signs{&uses_.may_run(), &queue_->exported_flag(), &views_.any_flag()};
  }

  // Between these calls, views of the memory submit operations to `queue` as well. External work
  // may still run there when the view ends: it is then added to the uses.
  void begin_view(Queue& queue);
  void end_view(Queue& queue) noexcept;
  // Whether the handle of a queue that its operations go to was exported, so that external work may
  // use the memory.
  [[nodiscard]] bool has_exported_queue() noexcept;
  // Appends events for the unfinished work on those queues, except on `except` (may be null). A
  // lost device has no unfinished work.
  [[nodiscard]] Result<void> unfinished_on_exported(const Queue* except,
                                                    std::vector<Ref<Event>>& out);

  // Records that all work currently on the queue may use the memory. Does not wait. Errors as
  // `Queue::unfinished`, except for a lost device, where nothing runs. Throws std::bad_alloc.
  [[nodiscard]] Result<void> record_queue_work(Queue& queue);

  // As `record_queue_work`, for memory that a pool has just handed out, possibly before the work it
  // was freed after has completed. Precondition: no other thread can find the record yet.
  [[nodiscard]] Result<void> inherit(Queue& queue);

  // As `record_queue_work` for a range of its uses, declared by the user of the memory: failures of
  // that work are not reported to later operations. Errors as `Queue::fence`.
  [[nodiscard]] Result<void> record_use(Queue& queue, const ByteRange& range);

  // As `release`, for a reference that is likely the last one. Needs fewer atomic operations for a
  // pool's block that no operation has used.
  void release_last() noexcept;

  // The steps below run without a reference: they release memory whose last reference was dropped.
  void release_now() noexcept override;
  [[nodiscard]] Ref<Queue> sole_queue() noexcept override;
  [[nodiscard]] bool is_released_on_demand() noexcept override;
  [[nodiscard]] std::size_t nbytes() const noexcept override { return facts_.nbytes; }
  void release_idle() noexcept override;
  void on_deferred() noexcept override { end_pending_release(); }
  void on_scheduled() noexcept override { begin_pending_release(); }

 private:
  friend class Registry;
  ~Allocation() override;
  void on_last_release() noexcept override;
  [[nodiscard]] std::vector<Ref<Queue>> exported_queues();
  // On failure the memory still belongs to the caller.
  [[nodiscard]] static Result<Ref<Allocation>> record_new(Queue& queue, const Facts& facts,
                                                          MemoryResource* resource) noexcept;
  void register_with(MemoryResource* resource);
  void set_outer(Ref<Allocation> outer);
  void mark_as_divided() noexcept;
  [[nodiscard]] Result<void> find_outer();
  [[nodiscard]] bool record_view_work(Queue& queue);
  [[nodiscard]] bool try_record_queue_work(Queue& queue) noexcept;
  [[nodiscard]] static Result<void> unfinished_on(Queue& queue, std::vector<Ref<Event>>& out);
  [[nodiscard]] Result<std::vector<Ref<Event>>> running_events();
  // Whether its owner submitted no operation on it, and no external work can use it.
  [[nodiscard]] bool never_used() noexcept {
    return !outer_ && !uses_.ever_used() && !views_.any() && !freed_after_ &&
           !queue_->is_exported();
  }
  // Whether everything submitted later to its queue runs after the work that it inherited, if any.
  // Accesses by the host are not ordered by a queue.
  [[nodiscard]] bool inherits_in_order() const noexcept {
    return !uses_.inherits() ||
           (!host_can_touch() && queue_->is_in_order() && !queue_->has_deferred_operations());
  }
  // Whether all its uses are known to have completed. Precondition: no references are left.
  [[nodiscard]] bool is_idle() noexcept {
    return !outer_ && uses_.is_known_idle() && !has_exported_queue() && !freed_after_;
  }
  // Whether the queues have to be queried for its uses, and by a library thread instead of the
  // thread that dropped the last reference.
  [[nodiscard]] bool needs_library_thread() noexcept {
    return in_continuation() ||
           (has_exported_queue() && (queue_->query_may_block() || is_queried_on_demand()));
  }
  [[nodiscard]] bool is_queried_on_demand() noexcept;
  [[nodiscard]] bool end_unused_block() noexcept;
  // The queue in whose order the memory can be freed now; null: none.
  [[nodiscard]] Ref<Queue> ordering_queue() noexcept;
  [[nodiscard]] Ref<Queue> find_queue(std::uint64_t serial) noexcept;
  // Returns false if the memory is released later.
  bool release_or_defer() noexcept;
  bool release_after_uses();
  // Notifies the resource, for memory that is released later.
  void notify_freed() noexcept;
  // Counts the memory as pending release. An allocation that finds no memory in the pool may wait
  // for it, until it has been released or until it is unknown when it will be.
  void begin_pending_release() noexcept;
  void end_pending_release() noexcept;
  // The pool that the memory came from, through whatever adaptors; null: none.
  [[nodiscard]] Pool* pool_below() const noexcept;
  [[nodiscard]] std::int64_t pending_bytes() const noexcept {
    return static_cast<std::int64_t>(facts_.nbytes);
  }
  // Precondition: nothing but work on `after` (may be null) uses the memory.
  static void return_memory(const Facts& facts, Queue& queue, MemoryResource* resource,
                            Queue* after) noexcept;
  void destroy(Queue* after) noexcept;
  void destroy() noexcept;
  void destroy_after_queue(Queue& queue) noexcept;

  Facts facts_;
  Ref<Queue> queue_;
  Device* other_device_ = nullptr;  // null: the queue's device
  Ref<MemoryResource> resource_;
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
  bool unused_ = false;      // no operation uses it any more
  bool is_pending_ = false;  // counted as pending release, by its pool or else by its device
  std::atomic<bool> is_divided_{false};
  std::atomic<bool> is_chunk_{false};
  bool is_block_ = false;     // of a pool, and in no other allocation; constant once registered
  std::uint64_t hashed_ = 0;  // hash of the base address; the registry's, like `entry_`
  RegistryEntry* entry_ = nullptr;  // null: not in the registry
};

}  // namespace isthmus
