#pragma once
// The heart of a simulated device: its clock, its memory's sums, its faults, and its queues'
// operations.
//
// There is no thread in it. An operation's effect happens on the thread that submits it, or later
// on the one that waits for it, looks at it or completes what it waited for; so one thread's
// program always runs the same. The lock is held for bookkeeping only, never while bytes move: a
// lane that is `busy` has one thread moving its first operation's bytes. Operations hold the
// engine, and it holds them until they have ended; the platform drains it before it goes.

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

// The operations of one queue whose effect has not happened yet, oldest first. Guarded by the
// engine's lock.
struct lane {
  const void* context = nullptr;
  std::deque<ref<operation>> waiting;
  std::uint64_t next_number = 0;
  std::uint64_t wanted_below = 0;  // effects of operations below this number are wanted
  std::uint64_t end_ns = 0;        // when the last effect's operation ends
  bool busy = false;
  bool orphan = false;  // its queue is gone
  // While it is in an agenda, whose `next` is: the engine.
  std::shared_ptr<engine> keeps_home;
  std::shared_ptr<lane> next;
};

class engine : public std::enable_shared_from_this<engine> {
 public:
  engine(std::string filter, const options& chosen);

  // Stands before every call: DEVICE_LOST, or the fault that was asked for.
  [[nodiscard]] result<void> begin(call kind);
  void change(const options& wanted);
  [[nodiscard]] std::uint64_t calls(call kind) const;
  [[nodiscard]] simulation_state state() const;
  [[nodiscard]] result<memory_info> memory() const;

  // Takes the bytes out of the capacity, or tells why not.
  [[nodiscard]] result<void> reserve(const allocation_request& request);
  void give_back(usm_kind kind, std::size_t nbytes) noexcept;
  void record_violation() noexcept;

  [[nodiscard]] std::shared_ptr<lane> add_lane(const void* context);
  void orphan(const std::shared_ptr<lane>& on) noexcept;
  // Pre: `after` are events that are pending or passed as the seam gives them; `from` is the lane's
  // queue.
  [[nodiscard]] ref<event> submit(const std::shared_ptr<lane>& on, work todo, wait_list after,
                                  isthmus::queue& from);

  // One look of the host at a pending event.
  void look(operation& at) noexcept;
  // The host waits for it.
  void demand(operation& wanted) noexcept;
  // Ends all operations of a context (null: all there are), in order. What still waits for another
  // device's host is abandoned.
  void drain(const void* context) noexcept;

 private:
  friend class agenda;
  using lanes = std::vector<std::shared_ptr<lane>>;
  // Called by an agenda, without the lock.
  void hurry(const demanded& order, agenda& next) noexcept;
  void pass_event(passed_event& passed, agenda& next) noexcept;
  void run(const std::shared_ptr<lane>& on, agenda& next) noexcept;
  void depend(operation& on, std::unique_ptr<passed_event> waiting, agenda& next) noexcept;

  // With the lock held.
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
  // Passed, not ended: by their end on the virtual clock, those with one end by their order of
  // passing. Linked by themselves, and each holds a reference.
  operation* ending_ = nullptr;
  operation* ending_last_ = nullptr;  // where there is one
};

}  // namespace isthmus::sim
