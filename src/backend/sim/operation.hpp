// SPDX-License-Identifier: Apache-2.0
#pragma once
// An operation of a simulated queue, which is its own event.
//
// The engine of its device controls its three stages. First it is submitted. Then it passes: its
// effect happens (the bytes move), its times are determined, and operations that wait for it may
// continue. It ends once the virtual clock has reached its end time, and completes as an event.
//
// This class is the record that the engine's steps change. Polls and waits start such steps; the
// engine's own subclass implements them.

#include <memory>
#include <string>
#include <vector>

#include "backend/event.hpp"
#include "backend/queue.hpp"
#include "backend/sim/memory.hpp"
#include "backend/sim/timeline.hpp"
#include "core/chain.hpp"

namespace isthmus::sim {

class Engine;
struct QueueOperations;

enum class Action : std::uint8_t { none, copy, copy_ranges, fill };

// The work of an operation. A plain copy or fill has one row.
struct Work {
  Action action = Action::none;
  Endpoint destination;
  Endpoint source;
  std::size_t destination_pitch = 0;
  std::size_t source_pitch = 0;
  std::size_t width = 0;
  std::size_t height = 1;
  std::vector<CopyRange> ranges;
  FillPattern pattern;
  Route route = Route::none;
  std::size_t nbytes = 0;  // for the timing model
};

// Moves the bytes.
void perform(const Work& work) noexcept;

class Operation;

// A demand for the effect of an operation and of everything that it waits for; with `to_the_end`,
// for its end as well.
struct Demanded {
  Ref<Operation> operation;
  bool to_the_end = false;
  Demanded* next = nullptr;
};

// Reports to an operation that an event it waits for has passed. One per event is allocated when
// the operation is submitted.
struct PassedEvent {
  Ref<Operation> waiting;
  bool foreign = false;
  bool order_only = false;          // a failure of the event does not propagate
  std::uint64_t not_before_ns = 0;  // on the clock of the waiting operation's device
  Error failure{};                  // of the event
  Ref<isthmus::Queue> queue{};      // released with this object
  PassedEvent* next = nullptr;
};

// An entry of a wait list, as interpreted by a simulated queue.
struct AwaitedEvent {
  Operation* simulated = nullptr;  // null for events that are not simulated
  bool order_only = false;         // its failure does not propagate

  [[nodiscard]] static AwaitedEvent of(Event& listed) noexcept;
};

class Operation : public Event {
 public:
  [[nodiscard]] const void* clock() const noexcept override { return engine_.get(); }
  [[nodiscard]] Engine& engine() const noexcept { return *engine_; }

 protected:
  Operation(std::shared_ptr<Engine> engine, std::shared_ptr<QueueOperations> queue_operations,
            Work work)
      : engine_{std::move(engine)},
        queue_operations_{std::move(queue_operations)},
        work_{std::move(work)} {}

  [[nodiscard]] Result<EventTimes> do_times() override { return times_; }
  void refresh() noexcept override = 0;
  void arm() noexcept override = 0;
  void arm_lazily() noexcept override {}
  void block(const os::Deadline& until) noexcept override;
  // Called once the end has been reached, after which `failure_` does not change.
  void complete_with_outcome() noexcept { complete(failure_); }

 private:
  friend class Engine;
  friend class EndedList;
  // Completes the event. Called once, with no lock held.
  void end() noexcept;

  const std::shared_ptr<Engine> engine_;
  const std::shared_ptr<QueueOperations> queue_operations_;

  // Guarded by the engine's lock until the operation has ended, and not written afterwards.
  Work work_;
  std::uint64_t number_ = 0;    // in its queue
  std::uint32_t blockers_ = 1;  // events that have not passed, and the submission itself
  std::uint32_t foreign_ = 0;   // blocking events that are not simulated
  std::uint32_t polls_ = 0;
  bool early_ = true;
  bool awaited_ = false;  // a thread waits: the clock advances to the end
  bool passed_ = false;   // the effect has happened, or never will
  bool retired_ = false;  // the end has been reached; `failure_` is final
  std::uint64_t ready_ns_ = 0;
  EventTimes times_;
  Error failure_;
  Error dependency_failure_;       // failure of an event that it waits for
  Chain<Demanded> waits_;          // simulated events waited for, until they are demanded
  Chain<PassedEvent> dependents_;  // operations that wait for this one to pass
  // Keeps the queue, and thus its device, alive while this operation waits for events that are not
  // simulated, whose completion the engine cannot force.
  Ref<isthmus::Queue> queue_;
  // `queue_` of an operation that ended while it was set. Released outside the lock.
  Ref<isthmus::Queue> released_queue_;
  Operation* next_ = nullptr;  // in the engine's list of ending operations, or in an EndedList
};

}  // namespace isthmus::sim
