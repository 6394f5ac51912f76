// SPDX-License-Identifier: Apache-2.0
#pragma once
// The core of a simulated device: its clock, memory accounting, faults, and the operations of its
// queues.
//
// An engine has no thread. An operation takes effect on the thread that submits it, or later on a
// thread that waits for it, polls it or completes an event that it waits for. A single-threaded
// program is therefore deterministic.
//
// Thread-safe. The lock is held for bookkeeping only, never while bytes move: while a
// `QueueOperations` is `busy`, one thread moves the bytes of its first operation. Operations hold
// references to the engine, and the engine holds references to them until they have ended. The
// platform's destructor drains its engines, which ends these reference cycles.

#include <memory>
#include <string>
#include <vector>

#include "backend/sim/agenda.hpp"
#include "backend/sim/calls.hpp"
#include "backend/sim/operation.hpp"
#include "backend/sim/options.hpp"
#include "backend/sim/queue_operations.hpp"
#include "backend/sim/timeline.hpp"
#include "backend/simulation.hpp"
#include "core/mutex.hpp"
#include "core/thread_safety.hpp"

namespace isthmus::sim {

class Engine : public std::enable_shared_from_this<Engine> {
 public:
  Engine(std::string filter, const Options& options);

  // Called at the start of every driver call. Returns DEVICE_LOST, or the error of a fault that was
  // set for this call.
  [[nodiscard]] Result<void> begin(Call kind);
  void change(const Options& options);
  [[nodiscard]] std::uint64_t calls(Call kind) const;
  [[nodiscard]] SimulationState state() const;
  [[nodiscard]] Result<MemoryInfo> memory() const;

  // Accounts for an allocation. OUT_OF_MEMORY if device memory of this size is not free.
  [[nodiscard]] Result<void> reserve(const AllocationRequest& request);
  void release_bytes(UsmKind kind, std::size_t nbytes) noexcept;
  void record_violation() noexcept;

  [[nodiscard]] std::shared_ptr<QueueOperations> add_queue_operations(const void* context);
  void release_queue_operations(const std::shared_ptr<QueueOperations>& queue_operations) noexcept;
  // `after` is as in the queue's `do_` functions; `queue` is the queue of `queue_operations`.
  [[nodiscard]] Ref<Event> submit(const std::shared_ptr<QueueOperations>& queue_operations,
                                  Work work, WaitList after, isthmus::Queue& queue);

  // Performs one poll by the host. Returns whether the operation has ended.
  [[nodiscard]] bool poll(Operation& operation) noexcept;
  // Performs a wait by the host: demands the operation and advances the clock to its end.
  void demand(Operation& operation) noexcept;
  // Ends all operations of a context (null: of all contexts), in order. An operation that still
  // waits for another device, which itself waits for the host, fails with ABANDONED.
  void drain(const void* context) noexcept;

  // Executes all steps of an agenda, of this and of other engines, and the steps that they enable.
  // The caller holds no engine's lock. The agenda is empty afterwards.
  static void execute(Agenda& agenda) noexcept;

 private:
  using QueueOperationsList = std::vector<std::shared_ptr<QueueOperations>>;
  // Returns false if the agenda has no step.
  [[nodiscard]] static bool execute_step(Agenda& agenda) noexcept;
  // The steps of an operation. The caller holds no engine's lock.
  void apply_demand(const Demanded& demanded, Agenda& next) noexcept;
  void pass_event(PassedEvent& passed, Agenda& next) noexcept;
  void run(const std::shared_ptr<QueueOperations>& queue_operations, Agenda& next) noexcept;
  void depend(Operation& operation, std::unique_ptr<PassedEvent> waiting, Agenda& next) noexcept;

  // Adds a step that runs `queue_operations`. Does nothing if an agenda has such a step already.
  void schedule(const std::shared_ptr<QueueOperations>& queue_operations, Agenda& next) noexcept
      ISTHMUS_REQUIRES(lock_);

  [[nodiscard]] bool is_early() ISTHMUS_REQUIRES(lock_);
  [[nodiscard]] Error check_operation(Operation& head) ISTHMUS_REQUIRES(lock_);
  [[nodiscard]] bool may_run(const QueueOperations& queue_operations) const ISTHMUS_REQUIRES(lock_);
  void enqueue(const Ref<Operation>& submitted, std::size_t blockers, std::uint32_t foreign,
               isthmus::Queue& queue) ISTHMUS_REQUIRES(lock_);
  void demand_below(QueueOperations& queue_operations, std::uint64_t below, Agenda& next) noexcept
      ISTHMUS_REQUIRES(lock_);
  void pass(const Ref<Operation>& done, Error failure, Agenda& next) noexcept
      ISTHMUS_REQUIRES(lock_);
  void end_in_order(const Ref<Operation>& done) noexcept ISTHMUS_REQUIRES(lock_);
  void retire(const Ref<Operation>& done, Agenda& next) noexcept ISTHMUS_REQUIRES(lock_);
  void retire_due(Agenda& next) noexcept ISTHMUS_REQUIRES(lock_);
  void handle_loss(Agenda& next) noexcept ISTHMUS_REQUIRES(lock_);
  void fail_waiting(QueueOperations& queue_operations, const Error& error, Agenda& next) noexcept
      ISTHMUS_REQUIRES(lock_);
  [[nodiscard]] Error lost_error() const;

  const std::string filter_;
  mutable Mutex lock_;
  Timeline timeline_ ISTHMUS_GUARDED_BY(lock_);
  CallLog log_ ISTHMUS_GUARDED_BY(lock_);
  Effect effect_ ISTHMUS_GUARDED_BY(lock_);
  std::uint64_t random_ ISTHMUS_GUARDED_BY(lock_);
  const std::uint64_t capacity_;
  std::uint64_t device_bytes_ ISTHMUS_GUARDED_BY(lock_) = 0;
  std::uint64_t host_bytes_ ISTHMUS_GUARDED_BY(lock_) = 0;
  bool lost_ ISTHMUS_GUARDED_BY(lock_) = false;
  QueueOperationsList all_queue_operations_ ISTHMUS_GUARDED_BY(lock_);
  // Operations that have passed but not ended, sorted by end time on the virtual clock, then by the
  // order in which they passed. An intrusive list that holds a reference to each.
  Operation* ending_ ISTHMUS_GUARDED_BY(lock_) = nullptr;
  Operation* ending_last_ ISTHMUS_GUARDED_BY(lock_) = nullptr;  // valid if the list is not empty
};

}  // namespace isthmus::sim
