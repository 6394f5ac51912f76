// SPDX-License-Identifier: Apache-2.0
#pragma once
// The core of a simulated device: its clock, memory accounting, faults, and the operations of its
// queues.
//
// It has no thread. An operation takes effect on the thread that submits it, or later on a thread
// that waits for it, polls it or completes an event that it waited for; a single-threaded program
// is therefore deterministic.
//
// Thread-safe. The lock is held for bookkeeping only, never while bytes move: while a `lane` is
// `busy`, one thread moves the bytes of its first operation. Operations hold references to the
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

class engine;

// The operations of one queue that have not taken effect yet, oldest first. Guarded by the engine's
// lock.
struct lane {
  const void* context = nullptr;
  std::deque<ref<operation>> waiting;
  std::uint64_t next_number = 0;
  std::uint64_t wanted_below = 0;  // effects of operations below this number are wanted
  std::uint64_t end_ns = 0;        // end time of the last operation that took effect
  bool busy = false;
  bool orphan = false;  // its queue is destroyed
  // Set while this lane is in an agenda, which links its lanes by `next`; keeps the engine alive.
  std::shared_ptr<engine> keeps_home;
  std::shared_ptr<lane> next;
};

class engine : public std::enable_shared_from_this<engine> {
 public:
  engine(std::string filter, const options& chosen);

  // Called first by every driver call. Returns DEVICE_LOST or the fault that was set for this call.
  [[nodiscard]] result<void> begin(call kind);
  void change(const options& wanted);
  [[nodiscard]] std::uint64_t calls(call kind) const;
  [[nodiscard]] simulation_state state() const;
  [[nodiscard]] result<memory_info> memory() const;

  // Subtracts the bytes from the capacity. OUT_OF_MEMORY if too few are left.
  [[nodiscard]] result<void> reserve(const allocation_request& request);
  void give_back(usm_kind kind, std::size_t nbytes) noexcept;
  void record_violation() noexcept;

  [[nodiscard]] std::shared_ptr<lane> add_lane(const void* context);
  void orphan(const std::shared_ptr<lane>& on) noexcept;
  // Pre: `after` contains events as the `do_` functions of a queue receive them; `from` is the
  // queue of the lane.
  [[nodiscard]] ref<event> submit(const std::shared_ptr<lane>& on, work todo, wait_list after,
                                  isthmus::queue& from);

  // The host polls a pending event once.
  void look(operation& at) noexcept;
  // The host waits for an operation.
  void demand(operation& wanted) noexcept;
  // Ends all operations of a context (null: of all contexts), in order. An operation that still
  // waits for another device, which itself waits for the host, fails with ABANDONED.
  void drain(const void* context) noexcept;

 private:
  friend class agenda;
  using lanes = std::vector<std::shared_ptr<lane>>;
  // Called by an agenda, without the lock.
  void hurry(const demanded& order, agenda& next) noexcept;
  void pass_event(passed_event& passed, agenda& next) noexcept;
  void run(const std::shared_ptr<lane>& on, agenda& next) noexcept;
  void depend(operation& on, std::unique_ptr<passed_event> waiting, agenda& next) noexcept;

  // Pre: the lock is held.
  [[nodiscard]] bool is_early();
  [[nodiscard]] error verdict(operation& head);
  [[nodiscard]] bool may_run(const lane& on) const;
  void enqueue(const ref<operation>& submitted, std::size_t blockers, std::uint32_t foreign,
               isthmus::queue& from);
  void want(lane& on, std::uint64_t below, agenda& next) noexcept;
  void pass(const ref<operation>& done, error failure, agenda& next) noexcept;
  void end_in_order(const ref<operation>& done) noexcept;
  void retire(const ref<operation>& done, agenda& next) noexcept;
  void retire_due(agenda& next) noexcept;
  void heed_loss(agenda& next) noexcept;
  void fail_waiting(lane& on, const error& why, agenda& next) noexcept;
  [[nodiscard]] error lost_error() const;

  const std::string filter_;
  mutable std::mutex lock_;
  timeline timeline_;
  call_log log_;
  effect when_;
  std::uint64_t random_;
  const std::uint64_t capacity_;
  std::uint64_t device_bytes_ = 0;
  std::uint64_t host_bytes_ = 0;
  bool lost_ = false;
  lanes lanes_;
  // Operations that have passed and not ended, by end time on the virtual clock, then by order of
  // passing. An intrusive list that holds a reference to each.
  operation* ending_ = nullptr;
  operation* ending_last_ = nullptr;  // valid if there is a first
};

}  // namespace isthmus::sim
