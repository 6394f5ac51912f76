// SPDX-License-Identifier: Apache-2.0
// The public functions of an engine: calls, memory accounting, submissions, polls and waits.
#include "backend/sim/engine.hpp"

#include <utility>
#include <vector>

#include "core/lock_guard.hpp"
#include "core/sizes.hpp"

namespace isthmus::sim {
namespace {

// An agenda whose steps are executed at the end of its scope. Declared before the lock guard, so
// that the lock was released by then.
class ScopedAgenda : public Agenda {
 public:
  ScopedAgenda() = default;
  ScopedAgenda(const ScopedAgenda&) = delete;
  ScopedAgenda& operator=(const ScopedAgenda&) = delete;
  ~ScopedAgenda() { Engine::execute(*this); }
};

// An operation as its waiters access it, by calls of its engine.
class AwaitableOperation final : public Operation {
 public:
  AwaitableOperation(std::shared_ptr<Engine> engine,
                     std::shared_ptr<QueueOperations> queue_operations, Work work)
      : Operation{std::move(engine), std::move(queue_operations), std::move(work)} {}

 protected:
  // Completes an operation that has ended if the thread that ended it has not completed it yet.
  // Otherwise the event of a later operation could complete before this one.
  void refresh() noexcept override {
    if (engine().poll(*this)) {
      complete_with_outcome();
    }
  }
  void arm() noexcept override { engine().demand(*this); }
};

// Notifies an operation that an event which is not simulated has completed. An order-only event
// always completes with success.
class ForeignEventContinuation final : public Continuation {
 public:
  explicit ForeignEventContinuation(std::unique_ptr<PassedEvent> waiting) noexcept
      : waiting_{std::move(waiting)} {}

  void run(Event& completed) noexcept override {
    {
      ScopedAgenda next;
      waiting_->foreign = true;
      waiting_->failure = completed.outcome();
      next.releases.push_back(std::move(waiting_));
    }
    delete this;
  }

 private:
  std::unique_ptr<PassedEvent> waiting_;
};

// Notifies an operation that an event which it waits for has passed.
struct Dependency {
  Event* event = nullptr;
  Operation* simulated = nullptr;                     // `event`, if it is simulated
  std::unique_ptr<PassedEvent> waiting;               // for a simulated event
  std::unique_ptr<ForeignEventContinuation> foreign;  // for another event
};

std::vector<Dependency> dependencies(const Ref<Operation>& operation, WaitList after) {
  std::vector<Dependency> all;
  all.reserve(after.size());
  for (const auto& dependency : after) {
    auto& each = all.emplace_back();
    each.event = dependency.get();
    const auto awaited = AwaitedEvent::of(*dependency);
    each.simulated = awaited.simulated;
    each.waiting = std::make_unique<PassedEvent>(PassedEvent{operation});
    each.waiting->order_only = awaited.order_only;
    if (each.simulated == nullptr) {
      each.foreign = std::make_unique<ForeignEventContinuation>(std::move(each.waiting));
    }
  }
  return all;
}

}  // namespace

Engine::Engine(std::string filter, const Options& options)
    : filter_{std::move(filter)},
      timeline_{options},
      effect_{options.effect},
      random_{options.seed},
      capacity_{options.capacity} {
  change(options);
}

Result<void> Engine::begin(Call kind) {
  ScopedAgenda next;
  const LockGuard hold{lock_};
  handle_loss(next);
  if (lost_ && kind != Call::free) {
    return lost_error();
  }
  if (auto failed = log_.record(kind, filter_)) {
    return failed;
  }
  return {};
}

void Engine::change(const Options& options) {
  ScopedAgenda next;
  const LockGuard hold{lock_};
  timeline_.change(options);
  effect_ = options.effect;
  if (options.reseed) {
    random_ = options.seed;
  }
  if (options.clear_faults) {
    log_.clear_faults();
  }
  for (const auto& fault : options.faults) {
    log_.add(fault);
  }
  if (options.lost_after) {
    log_.lose_after(*options.lost_after);
  }
  handle_loss(next);
}

std::uint64_t Engine::calls(Call kind) const {
  const LockGuard hold{lock_};
  return log_.call_count(kind);
}

SimulationState Engine::state() const {
  const LockGuard hold{lock_};
  return {timeline_.now(), device_bytes_, host_bytes_};
}

Result<MemoryInfo> Engine::memory() const {
  const LockGuard hold{lock_};
  if (lost_ || log_.lost()) {
    return lost_error();
  }
  return MemoryInfo{capacity_ - device_bytes_, capacity_};
}

Result<void> Engine::reserve(const AllocationRequest& request) {
  const LockGuard hold{lock_};
  if (request.kind != ISTHMUS_KIND_DEVICE) {
    host_bytes_ += request.nbytes;
    return {};
  }
  const auto available = capacity_ - device_bytes_;
  if (request.nbytes > available) {
    return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
                "cannot allocate {} of device memory on {}: {} of {} are free",
                describe_bytes(request.nbytes), filter_, describe_bytes(available),
                describe_bytes(capacity_));
  }
  device_bytes_ += request.nbytes;
  return {};
}

void Engine::release_bytes(UsmKind kind, std::size_t nbytes) noexcept {
  const LockGuard hold{lock_};
  (kind == ISTHMUS_KIND_DEVICE ? device_bytes_ : host_bytes_) -= nbytes;
}

void Engine::record_violation() noexcept {
  const LockGuard hold{lock_};
  log_.record_violation();
}

std::shared_ptr<QueueOperations> Engine::add_queue_operations(const void* context) {
  auto queue_operations = std::make_shared<QueueOperations>();
  queue_operations->context = context;
  const LockGuard hold{lock_};
  all_queue_operations_.push_back(queue_operations);
  return queue_operations;
}

void Engine::release_queue_operations(
    const std::shared_ptr<QueueOperations>& queue_operations) noexcept {
  const LockGuard hold{lock_};
  queue_operations->queue_destroyed = true;
  if (queue_operations->waiting.empty()) {
    std::erase(all_queue_operations_, queue_operations);
  }
}

Ref<Event> Engine::submit(const std::shared_ptr<QueueOperations>& queue_operations, Work work,
                          WaitList after, isthmus::Queue& queue) {
  ScopedAgenda next;
  const Ref<Operation> operation =
      make_ref<AwaitableOperation>(shared_from_this(), queue_operations, std::move(work));
  // Nothing may fail once the operation was enqueued: later operations would wait indefinitely.
  auto waits = dependencies(operation, after);
  auto submission = std::make_unique<PassedEvent>(PassedEvent{operation});
  std::uint32_t foreign = 0;
  for (const auto& each : waits) {
    foreign += each.simulated == nullptr ? 1 : 0;
    if (each.simulated != nullptr) {
      operation->waits_.push_back(
          std::make_unique<Demanded>(Demanded{Ref<Operation>{each.simulated}}));
    }
  }
  {
    const LockGuard hold{lock_};
    enqueue(operation, waits.size(), foreign, queue);
  }
  for (auto& each : waits) {
    if (each.simulated != nullptr) {
      each.simulated->engine().depend(*each.simulated, std::move(each.waiting), next);
    } else {
      each.event->on_complete(*each.foreign.release());
    }
  }
  next.releases.push_back(std::move(submission));
  return operation;
}

bool Engine::poll(Operation& operation) noexcept {
  ScopedAgenda next;
  const LockGuard hold{lock_};
  handle_loss(next);
  timeline_.advance_by(k_call_ns);
  // The first poll of an operation that no thread waits for returns PENDING, so that tests detect a
  // program which polls only once.
  if (!operation.passed_ && ++operation.polls_ > 1) {
    next.demand = {Ref<Operation>{&operation}, false};
  }
  retire_due(next);
  return operation.retired_;
}

void Engine::demand(Operation& operation) noexcept {
  ScopedAgenda next;
  const LockGuard hold{lock_};
  handle_loss(next);
  next.demand = {Ref<Operation>{&operation}, true};
}

void Engine::drain(const void* context) noexcept {
  const auto matches = [context](const QueueOperations& queue_operations) {
    return context == nullptr || queue_operations.context == context;
  };
  {
    ScopedAgenda next;
    const LockGuard hold{lock_};
    for (const auto& queue_operations : all_queue_operations_) {
      if (matches(*queue_operations)) {
        demand_below(*queue_operations, queue_operations->next_number, next);
        schedule(queue_operations, next);
      }
    }
  }
  ScopedAgenda next;
  const LockGuard hold{lock_};
  const auto abandoned =
      fail(ISTHMUS_ERROR_ABANDONED,
           "{} was destroyed while this operation waited for an event of another device", filter_);
  for (const auto& queue_operations : all_queue_operations_) {
    if (matches(*queue_operations) && !queue_operations->busy) {
      fail_waiting(*queue_operations, abandoned, next);
    }
  }
  for (const auto* done = ending_; done != nullptr; done = done->next_) {
    if (matches(*done->queue_operations_)) {
      timeline_.advance_to(done->times_.ended_ns);
    }
  }
  retire_due(next);
}

}  // namespace isthmus::sim
