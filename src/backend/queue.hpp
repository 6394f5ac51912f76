// SPDX-License-Identifier: Apache-2.0
#pragma once
// A queue: operations run one after the other, in the order of their submission.
//
// Submission never waits for the operation itself. The public functions perform the checks common
// to all drivers and translate `after` into events that the driver can wait for. The `do_`
// functions, which each driver implements, receive only such events. Thread-safe.
//
// The facts about the driver's queue are in queue_traits.hpp, the events that are still pending in
// submission_tail.hpp.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/context.hpp"
#include "backend/event.hpp"
#include "backend/host_function.hpp"
#include "backend/pool_references.hpp"
#include "backend/queue_traits.hpp"
#include "backend/submission_tail.hpp"
#include "core/bytes.hpp"
#include "core/lock_guard.hpp"
#include "core/mutex.hpp"
#include "core/owner.hpp"
#include "core/strided.hpp"

namespace isthmus {

class Queue : public RefCounted {
 public:
  Queue(Context& context, Device& device, QueueTraits traits);
  ~Queue() override;

  // Errors: FORKED, WRONG_CONTEXT if `device` is not a device of the context, the driver's.
  [[nodiscard]] static Result<Ref<Queue>> create(Context& context, Device& device);

  [[nodiscard]] Context& context() const noexcept { return context_; }
  [[nodiscard]] Device& device() const noexcept { return device_; }
  [[nodiscard]] const QueueTraits& traits() const noexcept { return traits_; }

  // The caller ensures that the ranges are pageable host memory, or memory of this context except
  // device memory of another device, and remain valid until the event has completed. If one of
  // these functions fails, nothing was submitted. If an event of `after` fails, the operation fails
  // with DEPENDENCY, unless the event is wrapped by `order_only`.
  [[nodiscard]] Result<Ref<Event>> copy(void* destination, const void* source, std::size_t nbytes,
                                        WaitList after);
  [[nodiscard]] Result<Ref<Event>> copy_2d(const Copy2dShape& shape, WaitList after);
  // No range overlaps the destination of another one. The list of ranges need not outlive the call.
  [[nodiscard]] Result<Ref<Event>> copy_ranges(const RangedCopy& copy, WaitList after);
  // No run overlaps the destination of another one.
  [[nodiscard]] Result<Ref<Event>> copy_strided(const StridedCopy& copy, WaitList after);
  [[nodiscard]] Result<Ref<Event>> fill(void* destination, const FillPattern& pattern,
                                        std::size_t nbytes, WaitList after);
  [[nodiscard]] Result<Ref<Event>> prefetch(const void* pointer, std::size_t nbytes, bool to_host,
                                            WaitList after);
  [[nodiscard]] Result<Ref<Event>> advise(const void* pointer, std::size_t nbytes,
                                          std::uint32_t advice, WaitList after);
  // Completes once everything submitted so far, and all of `after`, has completed.
  [[nodiscard]] Result<Ref<Event>> fence(WaitList after);
  // A fence that records its time, if the device can record times.
  [[nodiscard]] Result<Ref<Event>> mark();
  // Orders later external work on the driver's queue after `dependencies`, whatever their outcomes.
  // If the driver cannot do that yet, waits for `dependencies` on the calling thread. Errors:
  // CLOSED, the driver's error, and CALLBACK if the thread's interrupt function ended that wait.
  [[nodiscard]] Result<void> order_after(WaitList dependencies);
  // Adds events to `out` whose completion implies the completion of everything submitted so far, by
  // any code. Works on a closed queue too. Queries the driver, and can fail, only if the queue's
  // handle was exported.
  [[nodiscard]] Result<void> unfinished(std::vector<Ref<Event>>& out);
  [[nodiscard]] Result<Ref<Event>> run(std::unique_ptr<HostFunction> function, WaitList after);
  // For an off-queue operation: one that runs elsewhere but has a position in the order of this
  // queue. Call `reserve_off_queue` before its submission, then `insert_off_queue` or
  // `cancel_off_queue`. Throws std::bad_alloc.
  void reserve_off_queue();
  void cancel_off_queue() noexcept { tail_.cancel(); }
  // Orders later submissions to this queue after `event`, whatever its outcome. Does not depend on
  // memory or the driver: if either fails, the next submission waits for `event` instead. Waits
  // only if the queue may have external work, which nothing but a fence can delay. The wait ends
  // once the driver accepts a fence, `event` has completed, the queue is closed or its device is
  // lost. Returns the driver's error if it rejects all fences for a second: external work may then
  // run before `event` has completed.
  [[nodiscard]] Error insert_off_queue(const Ref<Event>& event) noexcept;

  // The reason why memory cannot be allocated for this queue now; no error if it can. Other code
  // that has the queue's handle may be recording the queue's work instead of running it. Running
  // the recorded work later would overwrite the memory after its reuse.
  [[nodiscard]] Error check_allocation() const {
    return is_exported() ? check_not_recording() : Error{};
  }
  // Whether at most one event of this queue is unfinished. Stores that event in `last`, or leaves
  // `last` null if there is none. Does not query the driver: returns false if `unfinished` would
  // have to. `last` is null before.
  [[nodiscard]] bool has_single_end(Ref<Event>& last) noexcept;

  // Whether no work submitted through this object is pending and the handle was never exported.
  [[nodiscard]] bool idle();
  // The same without querying the driver: also false if a completion was not observed yet.
  [[nodiscard]] bool is_known_idle() noexcept;
  // Waits for everything submitted so far. The failures of operations are reported by their events,
  // not here.
  [[nodiscard]] Result<void> wait(const os::Deadline& until);
  // Returns one event, which cannot fail, for the completion of everything submitted so far.
  [[nodiscard]] Result<Ref<Event>> pending();
  // Begins the wait of a blocking operation before it is submitted to this queue after
  // `dependencies`. DEADLOCK if this thread runs a function on a queue and the operation would
  // start only after that function has returned. Costs a load otherwise. Throws std::bad_alloc.
  [[nodiscard]] Result<void> begin_wait(FunctionWait& wait, WaitList dependencies = {}) const;
  // Rejects later submissions.
  void close() noexcept { closed_.store(true, std::memory_order_release); }
  [[nodiscard]] bool closed() const noexcept { return closed_.load(std::memory_order_acquire); }

  // Whether this is a device's default queue, which cannot be closed.
  [[nodiscard]] bool is_default() const noexcept { return traits_.is_default; }

  // Unique to this object and never reused, unlike its address. Never 0.
  [[nodiscard]] std::uint64_t serial() const noexcept { return serial_; }
  [[nodiscard]] virtual std::uintptr_t key() const noexcept;
  // Exports the driver's handle: from now on the queue may have external work. If an off-queue
  // operation is pending, waits and may fail like `insert_off_queue`. Null if there is no handle.
  [[nodiscard]] Result<void*> export_handle() noexcept;
  [[nodiscard]] bool is_exported() const noexcept {
    return is_exported_.load(std::memory_order_acquire);
  }
  [[nodiscard]] const std::atomic<bool>& exported_flag() const noexcept { return is_exported_; }
  [[nodiscard]] bool has_external_work() const noexcept {
    return is_exported() || traits_.is_default_stream;
  }
  // Whether all later work on the driver's queue, from any code, runs after the work submitted so
  // far. Such work may then reuse memory that is freed now.
  [[nodiscard]] bool is_in_order() const noexcept {
    return !has_external_work() || (traits_.keeps_order && !has_deferred_operations());
  }

  // Whether operations wait on the host for their submission to the driver. Once the handle is
  // exported, external work may run before them.
  [[nodiscard]] bool has_deferred_operations() const noexcept {
    return has_deferred_operations_.load(std::memory_order_acquire);
  }

  // The references held by pools, which do not count as uses of the queue.
  [[nodiscard]] PoolReferences& pool_references() noexcept { return pool_references_; }

 protected:
  [[nodiscard]] virtual Result<Ref<Event>> do_copy(void* destination, const void* source,
                                                   std::size_t nbytes, WaitList after) = 0;
  [[nodiscard]] virtual Result<Ref<Event>> do_copy_2d(const Copy2dShape& shape, WaitList after) = 0;
  [[nodiscard]] virtual Result<Ref<Event>> do_copy_ranges(const RangedCopy& copy,
                                                          WaitList after) = 0;
  // The default passes the runs to `do_copy_ranges`.
  [[nodiscard]] virtual Result<Ref<Event>> do_copy_strided(const StridedCopy& copy, WaitList after);
  [[nodiscard]] virtual Result<Ref<Event>> do_fill(void* destination, const FillPattern& pattern,
                                                   std::size_t nbytes, WaitList after) = 0;
  [[nodiscard]] virtual Result<Ref<Event>> do_prefetch(const void* pointer, std::size_t nbytes,
                                                       bool to_host, WaitList after);
  [[nodiscard]] virtual Result<Ref<Event>> do_advise(const void* pointer, std::size_t nbytes,
                                                     std::uint32_t advice, WaitList after);
  [[nodiscard]] virtual Result<Ref<Event>> do_fence(WaitList after) = 0;
  // The default suits drivers whose fences record times.
  [[nodiscard]] virtual Result<Ref<Event>> do_mark() { return do_fence({}); }
  // The start of a submitted function. `run` attaches `continuation` to `start_event` after it has
  // released the queue's lock: if no thread can be started, the continuation destroys the function,
  // and objects that the function owns may submit to this queue when destroyed.
  struct FunctionStart {
    Ref<Event> start_event;
    Continuation* continuation = nullptr;  // null: nothing to attach
  };
  // The default submits a fence, runs the function on a library thread, and submits a fence that
  // waits for a host event. Needs ISTHMUS_CAN_WAIT_FOR_HOST. On failure `function` is unchanged.
  [[nodiscard]] virtual Result<Ref<Event>> do_run(std::unique_ptr<HostFunction>& function,
                                                  WaitList after, FunctionStart& start);
  [[nodiscard]] virtual Error check_not_recording() const { return {}; }
  // Whether `candidate` may appear in `after` unchanged: an event of this driver and context.
  [[nodiscard]] virtual bool can_wait_for(Event& candidate) const noexcept = 0;
  // Creates an event that completes together with `foreign` and replaces it in `after`. Only called
  // with ISTHMUS_CAN_WAIT_FOR_HOST.
  [[nodiscard]] virtual Result<Ref<Event>> import(Event& foreign);
  // Returns an event that replaces `event` in `after` and does not propagate its failure. `end` is
  // a library event that completes with success together with `event`. The default suits drivers
  // that accept `end` unchanged.
  [[nodiscard]] virtual Result<Ref<Event>> order_only_event(const Ref<Event>& event,
                                                            const Ref<Event>& end) {
    static_cast<void>(event);
    return end;
  }
  [[nodiscard]] virtual void* native() const noexcept { return nullptr; }

  // Like `unfinished`, but only for work submitted through this object. Does not query the driver.
  void add_own_unfinished(std::vector<Ref<Event>>& out) { tail_.add_unfinished(out); }
  // Set while operations are deferred, which external work may overtake.
  void set_has_deferred_operations(bool value) noexcept {
    has_deferred_operations_.store(value, std::memory_order_release);
  }

 private:
  // `function`: the host function that `call` submits, if any.
  template <class Lock = SharedLockGuard<SharedMutex>, class Submit>
  Result<Ref<Event>> submit(WaitList after, Submit&& call, HostFunction* function = nullptr);
  void set_position(Event& submitted, std::uint64_t number, WaitList after) const noexcept;
  [[nodiscard]] Error check_usable() const;
  [[nodiscard]] Result<std::vector<Ref<Event>>> translate(WaitList after);
  // Adds events for the off-queue events that a submission must follow. Returns the limit for
  // `SubmissionTail::record`.
  [[nodiscard]] std::uint64_t add_off_queue_events(std::vector<Ref<Event>>& after);
  [[nodiscard]] Error order_after_off_queue() noexcept;
  [[nodiscard]] Error fence_without_throwing() noexcept;
  [[nodiscard]] Error ordering_error(const Error& cause) const noexcept;

  Context& context_;
  Device& device_;
  Ref<Context> context_ref_;
  // Held exclusively by `run`, which submits two fences that no other thread may separate; shared
  // by other submissions.
  SharedMutex submission_lock_;
  const std::uint64_t serial_;
  std::atomic<bool> closed_{false};
  std::atomic<bool> is_exported_;
  std::atomic<bool> has_deferred_operations_{false};
  const QueueTraits traits_;
  PoolReferences pool_references_{*this};
  SubmissionTail tail_;
};

}  // namespace isthmus
