// SPDX-License-Identifier: Apache-2.0
#pragma once
// The core of a simulated device: its clock, memory accounting, faults, and the operations of its
// queues.
//
// It has no thread. An operation takes effect on the thread that submits it, or later on a thread
// that waits for it, polls it or completes an event that it waited for; a single-threaded program
// is therefore deterministic.
//
// Thread-safe. The lock is held for bookkeeping only, never while bytes move: while a copy engine
// is `busy`, one thread moves the bytes of its first operation. Operations hold references to the
// engine, and it holds references to them until they have ended; the platform drains the engine
// before it is destroyed.

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/sim/agenda.hpp"
#include "backend/sim/calls.hpp"
#include "backend/sim/operation.hpp"
#include "backend/sim/options.hpp"
#include "backend/sim/timeline.hpp"
#include "backend/simulation.hpp"

namespace isthmus::sim {

class Engine;

// The operations of one queue that have not taken effect yet, oldest first. Guarded by the engine's
// lock.
struct CopyEngine {
  const void* context = nullptr;
  std::deque<Ref<Operation>> waiting;
  std::uint64_t next_number = 0;
  std::uint64_t demanded_below = 0;  // effects of operations below this number are demanded
  std::uint64_t end_ns = 0;          // end time of the last operation that took effect
  bool busy = false;
  bool queue_destroyed = false;
  // Set while this is in an agenda, which links its copy engines by `next`; keeps the engine alive.
  std::shared_ptr<Engine> keep_alive;
  std::shared_ptr<CopyEngine> next;
};

class Engine : public std::enable_shared_from_this<Engine> {
 public:
  Engine(std::string filter, const Options& options);

  // Called first by every driver call. Returns DEVICE_LOST or the fault that was set for this call.
  [[nodiscard]] Result<void> begin(Call kind);
  void change(const Options& options);
  [[nodiscard]] std::uint64_t calls(Call kind) const;
  [[nodiscard]] SimulationState state() const;
  [[nodiscard]] Result<MemoryInfo> memory() const;

  // Subtracts the bytes from the capacity. OUT_OF_MEMORY if too few are left.
  [[nodiscard]] Result<void> reserve(const AllocationRequest& request);
  void release_bytes(UsmKind kind, std::size_t nbytes) noexcept;
  void record_violation() noexcept;

  [[nodiscard]] std::shared_ptr<CopyEngine> add_copy_engine(const void* context);
  void release_copy_engine(const std::shared_ptr<CopyEngine>& copy_engine) noexcept;
  // Pre: `after` contains events as the `do_` functions of a queue receive them; `queue` is the
  // queue of `copy_engine`.
  [[nodiscard]] Ref<Event> submit(const std::shared_ptr<CopyEngine>& copy_engine, Work work,
                                  WaitList after, isthmus::Queue& queue);

  // The host polls a pending event once. Returns whether the operation has ended.
  [[nodiscard]] bool poll(Operation& operation) noexcept;
  // The host waits for an operation.
  void demand(Operation& operation) noexcept;
  // Ends all operations of a context (null: of all contexts), in order. An operation that still
  // waits for another device, which itself waits for the host, fails with ABANDONED.
  void drain(const void* context) noexcept;

 private:
  friend class Agenda;
  using CopyEngines = std::vector<std::shared_ptr<CopyEngine>>;
  // Called by an agenda, without the lock.
  void apply_demand(const Demanded& demanded, Agenda& next) noexcept;
  void pass_event(PassedEvent& passed, Agenda& next) noexcept;
  void run(const std::shared_ptr<CopyEngine>& copy_engine, Agenda& next) noexcept;
  void depend(Operation& operation, std::unique_ptr<PassedEvent> waiting, Agenda& next) noexcept;

  // Pre: the lock is held.
  [[nodiscard]] bool is_early();
  [[nodiscard]] Error check_operation(Operation& head);
  [[nodiscard]] bool may_run(const CopyEngine& copy_engine) const;
  void enqueue(const Ref<Operation>& submitted, std::size_t blockers, std::uint32_t foreign,
               isthmus::Queue& queue);
  void demand_below(CopyEngine& copy_engine, std::uint64_t below, Agenda& next) noexcept;
  void pass(const Ref<Operation>& done, Error failure, Agenda& next) noexcept;
  void end_in_order(const Ref<Operation>& done) noexcept;
  void retire(const Ref<Operation>& done, Agenda& next) noexcept;
  void retire_due(Agenda& next) noexcept;
  void handle_loss(Agenda& next) noexcept;
  void fail_waiting(CopyEngine& copy_engine, const Error& error, Agenda& next) noexcept;
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
  CopyEngines copy_engines_;
  // Operations that have passed and not ended, by end time on the virtual clock, then by order of
  // passing. An intrusive list that holds a reference to each.
  Operation* ending_ = nullptr;
  Operation* ending_last_ = nullptr;  // valid if there is a first
};

}  // namespace isthmus::sim
