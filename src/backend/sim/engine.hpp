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
#include <mutex>
#include <string>
#include <vector>

#include "backend/sim/agenda.hpp"
#include "backend/sim/calls.hpp"
#include "backend/sim/operation.hpp"
#include "backend/sim/options.hpp"
#include "backend/sim/queue_operations.hpp"
#include "backend/sim/timeline.hpp"
#include "backend/simulation.hpp"

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
  // Pre: `after` satisfies the preconditions of the queue's `do_` functions; `queue` is the queue
  // of `queue_operations`.
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
  // Pre: the caller holds no engine's lock. Post: the agenda is empty.
  static void execute(Agenda& agenda) noexcept;

 private:
  using QueueOperationsList = std::vector<std::shared_ptr<QueueOperations>>;
  // Returns false if the agenda has no step.
  [[nodiscard]] static bool execute_step(Agenda& agenda) noexcept;
  // The steps of an operation. Pre: no lock is held.
  void apply_demand(const Demanded& demanded, Agenda& next) noexcept;
  void pass_event(PassedEvent& passed, Agenda& next) noexcept;
  void run(const std::shared_ptr<QueueOperations>& queue_operations, Agenda& next) noexcept;
  void depend(Operation& operation, std::unique_ptr<PassedEvent> waiting, Agenda& next) noexcept;

  // Pre of all functions below: the lock is held.

  // Adds a step that runs `queue_operations`. Does nothing if an agenda has such a step already.
  void schedule(const std::shared_ptr<QueueOperations>& queue_operations, Agenda& next) noexcept;

  [[nodiscard]] bool is_early();
  [[nodiscard]] Error check_operation(Operation& head);
  [[nodiscard]] bool may_run(const QueueOperations& queue_operations) const;
  void enqueue(const Ref<Operation>& submitted, std::size_t blockers, std::uint32_t foreign,
               isthmus::Queue& queue);
  void demand_below(QueueOperations& queue_operations, std::uint64_t below, Agenda& next) noexcept;
  void pass(const Ref<Operation>& done, Error failure, Agenda& next) noexcept;
  void end_in_order(const Ref<Operation>& done) noexcept;
  void retire(const Ref<Operation>& done, Agenda& next) noexcept;
  void retire_due(Agenda& next) noexcept;
  void handle_loss(Agenda& next) noexcept;
  void fail_waiting(QueueOperations& queue_operations, const Error& error, Agenda& next) noexcept;
  [[nodiscard]] Error lost_error() const;

  const std::string filter_;
  mutable std::mutex lock_;
  Timeline timeline_;
  CallLog log_;
  Effect effect_;
  std::uint64_t random_;
  const std::uint64_t capacity_;
  std::uint64_t device_bytes_ = 0;
  std::uint64_t host_bytes_ = 0;
  bool lost_ = false;
  QueueOperationsList all_queue_operations_;
  // Operations that have passed but not ended, sorted by end time on the virtual clock, then by the
  // order in which they passed. An intrusive list that holds a reference to each.
  Operation* ending_ = nullptr;
  Operation* ending_last_ = nullptr;  // valid if the list is not empty
};

}  // namespace isthmus::sim
