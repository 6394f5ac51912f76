// SPDX-License-Identifier: Apache-2.0
#pragma once
// A queue: operations run one after the other, in the order of their submission.
//
// Submission never waits for the operation itself. The public functions check what all drivers have
// in common and translate the events to wait for into events that the driver knows. The `do_`
// functions, which each driver implements, receive only such events. Thread-safe.

#include <atomic>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <span>
#include <vector>

#include "backend/context.hpp"
#include "backend/event.hpp"
#include "core/bytes.hpp"
#include "core/owner.hpp"
#include "core/spin_lock.hpp"
#include "core/strided.hpp"

namespace isthmus {

// A function that runs in queue order on a library thread. It may block and call anything but must
// not wait for later operations on its queue. `context.function_address` gives the address at
// which it may access device memory. `context` is the queue's.
class HostFunction {
 public:
  HostFunction() = default;
  HostFunction(const HostFunction&) = delete;
  HostFunction& operator=(const HostFunction&) = delete;
  virtual ~HostFunction() = default;
  virtual Error run(Context& context) noexcept = 0;
};

class Queue : public RefCounted {
 public:
  // `part`: the queue is part of the context's platform, like a default queue.
  Queue(Context& context, Device& device, bool part);
  ~Queue() override;

  [[nodiscard]] Context& context() const noexcept { return context_; }
  [[nodiscard]] Device& device() const noexcept { return device_; }

  // Pre: the ranges are pageable host memory, or memory of this context that does not belong to
  // another device only, and stay so until the event has completed; nbytes > 0. Post: on failure
  // nothing was submitted. If an event of `after` fails, this operation fails with DEPENDENCY,
  // unless the event is there as `order_only`.
  [[nodiscard]] Result<Ref<Event>> copy(void* destination, const void* source, std::size_t nbytes,
                                        WaitList after);
  [[nodiscard]] Result<Ref<Event>> copy_2d(const Copy2dShape& shape, WaitList after);
  // Pre: there is at least one range, none is empty, and none overlaps what another one writes. The
  // list of ranges need not outlive the call.
  [[nodiscard]] Result<Ref<Event>> copy_ranges(const RangedCopy& copy, WaitList after);
  // Pre: its runs satisfy the precondition of `copy_ranges`.
  [[nodiscard]] Result<Ref<Event>> copy_strided(const StridedCopy& copy, WaitList after);
  // Pre: nbytes is a multiple of the pattern's size.
  [[nodiscard]] Result<Ref<Event>> fill(void* destination, const FillPattern& pattern,
                                        std::size_t nbytes, WaitList after);
  [[nodiscard]] Result<Ref<Event>> prefetch(const void* pointer, std::size_t nbytes, bool to_host,
                                            WaitList after);
  [[nodiscard]] Result<Ref<Event>> advise(const void* pointer, std::size_t nbytes,
                                          std::uint32_t advice, WaitList after);
  // Completes once everything submitted so far, and all of `after`, has completed.
  [[nodiscard]] Result<Ref<Event>> fence(WaitList after);
  // A fence that records its time, if the device can record times at all.
  [[nodiscard]] Result<Ref<Event>> mark();
  // Orders what other code submits to the driver's queue from now on after `before`, whatever its
  // outcome. Waits for `before` here if the driver cannot take it yet: CALLBACK if the thread's
  // interrupt function ended that wait. Errors: CLOSED, and the driver's failure.
  [[nodiscard]] Result<void> stand_behind(WaitList before);
  // Adds to `out` the events whose end is the end of everything submitted so far, by any code.
  // Works on a closed queue too. Queries the driver, and can fail, only if the queue's handle was
  // exported.
  [[nodiscard]] Result<void> unfinished(std::vector<Ref<Event>>& out);
  [[nodiscard]] Result<Ref<Event>> run(std::unique_ptr<HostFunction> function, WaitList after);
  // For an operation that runs elsewhere but has a position in the order of this queue:
  // `reserve_place` before its submission, then `take_place` or `give_up_place`. Throws
  // std::bad_alloc.
  void reserve_place();
  void give_up_place() noexcept { give_up_submission(); }
  // Orders what is submitted here from now on after `elsewhere`, whatever its outcome. Needs
  // neither memory nor the driver: without them the next submission waits for `elsewhere` instead.
  // Waits only if other code submits to the driver's queue, which nothing else would hold back, and
  // only until the driver accepts a fence, `elsewhere` has ended, the queue is closed or its device
  // is lost. Returns the driver's error if it refuses all fences for a second: other code's work
  // may then run before `elsewhere` has ended.
  [[nodiscard]] Error take_place(const Ref<Event>& elsewhere) noexcept;

  // Why memory cannot be allocated for this queue now; no error if it can. Work on a queue with an
  // exported handle may be recorded rather than run, and be run repeatedly later; it would
  // overwrite the memory after its reuse.
  [[nodiscard]] Error refuse_allocation() const { return lent() ? refuse_recorded() : Error{}; }
  // Whether a single event, or none, ends everything unfinished. It is stored in `last`, which
  // stays null if there is none. Does not query the driver: false if `unfinished` would have to.
  // Pre: `last` is null.
  [[nodiscard]] bool ends_in_one(Ref<Event>& last) noexcept;

  // Whether nothing submitted through this object is pending, and no other work can be.
  [[nodiscard]] bool idle();
  // The same without querying the driver: also false if an end has not been noticed yet.
  [[nodiscard]] bool quiet() noexcept;
  // Waits for everything submitted so far. Failures of operations belong to their events and are
  // not returned here.
  [[nodiscard]] Result<void> wait(const os::Deadline& until);
  // The end of everything submitted so far, as one event that cannot fail.
  [[nodiscard]] Result<Ref<Event>> pending();
  // Rejects later submissions.
  void close() noexcept { closed_.store(true, std::memory_order_release); }
  [[nodiscard]] bool closed() const noexcept { return closed_.load(std::memory_order_acquire); }

  // Whether this is a device's default queue, which cannot be closed.
  [[nodiscard]] bool is_default() const noexcept { return !keep_; }

  // Unique to this object and never reused, unlike its address. Never 0.
  [[nodiscard]] std::uint64_t serial() const noexcept { return serial_; }
  [[nodiscard]] virtual std::uintptr_t key() const noexcept;
  // Exports the driver's handle: from now on the queue may have work unknown to the library. Like
  // `take_place`, waits and may fail if an operation elsewhere precedes. Null if there is no
  // handle.
  [[nodiscard]] Result<void*> lend() noexcept;
  [[nodiscard]] bool lent() const noexcept { return lent_.load(std::memory_order_acquire); }
  [[nodiscard]] const std::atomic<bool>& lent_flag() const noexcept { return lent_; }
  // Whether a query for unfinished work, once the handle is exported, may wait for functions that
  // the driver runs. Such a query must not be made while memory is freed, which may happen in such
  // a function.
  [[nodiscard]] bool asking_may_block() const noexcept { return asking_may_block_; }
  // Whether library threads may query this queue only while a thread of the program is in a call of
  // the library, which waits for that query for at most 4 ms, since the driver may block it.
  // Intel's OpenCL runtime for CPUs (2024.2 to 2026.2) crashes if one thread waits for an
  // out-of-order queue while another submits to it: a program that waits for its queue on its only
  // thread must not meet a library thread there.
  [[nodiscard]] bool is_asked_on_demand() const noexcept { return is_asked_on_demand_; }
  // Whether other code submits to the driver's queue without obtaining its handle.
  [[nodiscard]] bool is_default_stream() const noexcept { return is_everybodys_; }
  [[nodiscard]] bool has_external_work() const noexcept { return lent() || is_everybodys_; }
  // Whether all later work on the driver's queue, from any code, runs after the work submitted so
  // far. It may then use memory that is freed now.
  [[nodiscard]] bool is_in_order() const noexcept {
    return !has_external_work() || (keeps_order_ && !has_deferred_operations());
  }

  // Whether operations wait on the host for their submission to the driver. Once the handle is
  // exported, other code's work may run before them.
  [[nodiscard]] bool has_deferred_operations() const noexcept {
    return holds_back_.load(std::memory_order_acquire);
  }

  // Each pool that knows the queue holds a reference that is not a use: taken before `note_pool`,
  // released after `forget_pool`. Once only pools refer to the queue, no other code can obtain it
  // again.
  void note_pool() noexcept;
  void forget_pool() noexcept;
  [[nodiscard]] bool known_to_pools_alone() noexcept;
  // For a thread that found the queue without holding a reference, under a lock that the queue's
  // destruction takes too. Returns false if only pools refer to the queue.
  [[nodiscard]] bool retain_if_known() noexcept;

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
  // Starts a submitted function. `turn` is attached to `reached` after the queue's lock was
  // released: if no thread can be started, the function is destroyed there, and the destruction of
  // what it owns may submit to this queue.
  struct FunctionStart {
    Ref<Event> reached;
    Continuation* turn = nullptr;  // null: nothing to attach
  };
  // The default submits a fence, runs the function on a library thread, and makes the queue wait
  // for a host event. Needs ISTHMUS_CAN_WAIT_FOR_HOST. On failure the caller keeps the function.
  [[nodiscard]] virtual Result<Ref<Event>> do_run(std::unique_ptr<HostFunction>& function,
                                                  WaitList after, FunctionStart& start);
  [[nodiscard]] virtual Error refuse_recorded() const { return {}; }
  // Whether `candidate` may appear in `after` unchanged: an event of this driver and context.
  [[nodiscard]] virtual bool knows(Event& candidate) const noexcept = 0;
  // An event for `after` in place of `foreign`, which completes together with it. Only called with
  // ISTHMUS_CAN_WAIT_FOR_HOST.
  [[nodiscard]] virtual Result<Ref<Event>> import(Event& foreign);
  // An event for `after` that stands for the end of `known`, whatever its outcome. `end` is a
  // library event that ends with `known`. The default suits drivers that accept `end` unchanged.
  [[nodiscard]] virtual Result<Ref<Event>> end_of_known(const Ref<Event>& known,
                                                        const Ref<Event>& end) {
    static_cast<void>(known);
    return end;
  }
  [[nodiscard]] virtual void* native() const noexcept { return nullptr; }

  // An adopted queue may have its owner's work from the start.
  void mark_lent() noexcept { lent_.store(true, std::memory_order_release); }
  // These two are called during construction. `mark_everybodys`: other code submits to the driver's
  // queue. `mark_ordered`: the driver runs everything submitted there in order of submission, from
  // any code, as long as this object lives.
  void mark_everybodys() noexcept { is_everybodys_ = true; }
  void mark_ordered() noexcept { keeps_order_ = true; }
  void mark_asking_may_block() noexcept { asking_may_block_ = true; }
  // Covers only what was submitted through this object. Does not query the driver.
  void add_unfinished_of_ours(std::vector<Ref<Event>>& out);
  void mark_asked_on_demand() noexcept { is_asked_on_demand_ = true; }
  // Set while an operation is held back that other code's work may overtake.
  void set_holds_back(bool whether) noexcept {
    holds_back_.store(whether, std::memory_order_release);
  }

 private:
  template <class Lock = std::shared_lock<std::shared_mutex>, class Submit>
  Result<Ref<Event>> submit(WaitList after, Submit&& call);
  [[nodiscard]] Error refuse() const;
  [[nodiscard]] Result<std::vector<Ref<Event>>> translate(WaitList after);
  // Reserves the capacity that `remember` needs, so that nothing can fail once an operation is in
  // flight. Returns the number of the next tail.
  [[nodiscard]] std::uint64_t begin_submission();
  void give_up_submission() noexcept;
  // Adds the events elsewhere that this submission must follow. Returns a number above those of all
  // their tails, or 0 if there are none.
  [[nodiscard]] std::uint64_t add_from_elsewhere(std::vector<Ref<Event>>& after);
  void remember(Ref<Event> submitted, std::uint64_t began_at,
                std::uint64_t elsewhere_below) noexcept;

  // A pending event elsewhere; null if all have ended.
  [[nodiscard]] Ref<Event> pending_elsewhere() noexcept;
  [[nodiscard]] Error follow_elsewhere() noexcept;
  [[nodiscard]] Error fence_without_throwing() noexcept;
  [[nodiscard]] Error cannot_follow(const Error& refused) const noexcept;

  struct Tail {
    // Increases with each tail added.
    std::uint64_t number;
    Ref<Event> last;
    bool is_elsewhere = false;  // not in the driver's queue: the next submission waits for it
  };

  Context& context_;
  Device& device_;
  Ref<Context> keep_;
  // Held exclusively by `run`, which submits two fences that no other thread may separate; shared
  // by other submissions.
  std::shared_mutex handing_over_;
  const std::uint64_t serial_;
  std::atomic<bool> closed_{false};
  std::atomic<bool> lent_{false};
  std::atomic<bool> holds_back_{false};
  bool is_everybodys_ = false;
  bool keeps_order_ = false;
  bool asking_may_block_ = false;
  bool is_asked_on_demand_ = false;
  // Guards `pools_`.
  SpinLock pools_lock_;
  // References held by pools.
  std::uint32_t pools_ = 0;
  // The last events: one, or one for each thread that submits concurrently, and those elsewhere
  // that no submission has followed yet. Everything else submitted precedes them in the queue's
  // order. The lock guards the next three fields.
  SpinLock tails_lock_;
  std::uint32_t promised_ = 0;  // submissions begun and not in `tails_` yet
  std::vector<Tail> tails_;
  std::uint64_t next_number_ = 0;
  std::atomic<bool> waits_elsewhere_{false};  // whether one of `tails_` is elsewhere
};

}  // namespace isthmus
