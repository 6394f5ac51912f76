// SPDX-License-Identifier: Apache-2.0
// Requests to an engine from outside: calls, memory accounting, submissions, polls and waits.
#include "backend/sim/engine.hpp"

#include <utility>
#include <vector>

#include "core/sizes.hpp"

namespace isthmus::sim {
namespace {

// Notifies an operation that an event which is not simulated has completed. An event that only
// orders completes with success.
class ForeignPassed final : public Continuation {
 public:
  explicit ForeignPassed(std::unique_ptr<PassedEvent> waiting) noexcept
      : waiting_{std::move(waiting)} {}

  void run(Event& completed) noexcept override {
    {
      Agenda next;
      waiting_->foreign = true;
      waiting_->failure = completed.outcome();
      next.releases.push_back(std::move(waiting_));
    }
    delete this;
  }

 private:
  std::unique_ptr<PassedEvent> waiting_;
};

// How an operation learns that an event it waits for has passed.
struct Dependency {
  Event* before = nullptr;
  Operation* simulated = nullptr;          // `before`, if it is simulated
  std::unique_ptr<PassedEvent> waiting;    // for a simulated event
  std::unique_ptr<ForeignPassed> foreign;  // for another event
};

std::vector<Dependency> dependencies(const Ref<Operation>& operation, WaitList after) {
  std::vector<Dependency> all;
  all.reserve(after.size());
  for (const auto& before : after) {
    auto& each = all.emplace_back();
    each.before = before.get();
    const auto awaited = AwaitedEvent::of(*before);
    each.simulated = awaited.simulated;
    each.waiting = std::make_unique<PassedEvent>(operation);
    each.waiting->order_only = awaited.order_only;
    if (each.simulated == nullptr) {
      each.foreign = std::make_unique<ForeignPassed>(std::move(each.waiting));
    }
  }
  return all;
}

}  // namespace

Engine::Engine(std::string filter, const Options& chosen)
    : filter_{std::move(filter)},
      timeline_{chosen},
      when_{chosen.when},
      random_{chosen.seed},
      capacity_{chosen.capacity} {
  change(chosen);
}

// An agenda declared before the lock guard is worked off after the lock was released.
Result<void> Engine::begin(Call kind) {
  Agenda next;
  const std::lock_guard hold{lock_};
  heed_loss(next);
  if (lost_ && kind != Call::free) {
    return lost_error();
  }
  if (auto failed = log_.record(kind, filter_)) {
    return failed;
  }
  return {};
}

void Engine::change(const Options& wanted) {
  Agenda next;
  const std::lock_guard hold{lock_};
  timeline_.change(wanted);
  when_ = wanted.when;
  if (wanted.reseed) {
    random_ = wanted.seed;
  }
  if (wanted.clear_faults) {
    log_.clear_faults();
  }
  for (const auto& planned : wanted.faults) {
    log_.add(planned);
  }
  if (wanted.lost_after) {
    log_.lose_after(*wanted.lost_after);
  }
  heed_loss(next);
}

std::uint64_t Engine::calls(Call kind) const {
  const std::lock_guard hold{lock_};
  return log_.made(kind);
}

SimulationState Engine::state() const {
  const std::lock_guard hold{lock_};
  return {timeline_.now(), device_bytes_, host_bytes_};
}

Result<MemoryInfo> Engine::memory() const {
  const std::lock_guard hold{lock_};
  if (lost_ || log_.lost()) {
    return lost_error();
  }
  return MemoryInfo{capacity_ - device_bytes_, capacity_};
}

Result<void> Engine::reserve(const AllocationRequest& request) {
  const std::lock_guard hold{lock_};
  if (request.kind != ISTHMUS_KIND_DEVICE) {
    host_bytes_ += request.nbytes;
    return {};
  }
  const auto left = capacity_ - device_bytes_;
  if (request.nbytes > left) {
    return fail(
        ISTHMUS_ERROR_OUT_OF_MEMORY, "cannot allocate {} of device memory on {}: {} of {} are free",
        describe_bytes(request.nbytes), filter_, describe_bytes(left), describe_bytes(capacity_));
  }
  device_bytes_ += request.nbytes;
  return {};
}

void Engine::give_back(UsmKind kind, std::size_t nbytes) noexcept {
  const std::lock_guard hold{lock_};
  (kind == ISTHMUS_KIND_DEVICE ? device_bytes_ : host_bytes_) -= nbytes;
}

void Engine::record_violation() noexcept {
  const std::lock_guard hold{lock_};
  log_.record_violation();
}

std::shared_ptr<CopyEngine> Engine::add_lane(const void* context) {
  auto made = std::make_shared<CopyEngine>();
  made->context = context;
  const std::lock_guard hold{lock_};
  lanes_.push_back(made);
  return made;
}

void Engine::orphan(const std::shared_ptr<CopyEngine>& lane) noexcept {
  const std::lock_guard hold{lock_};
  lane->orphan = true;
  if (lane->waiting.empty()) {
    std::erase(lanes_, lane);
  }
}

Ref<Event> Engine::submit(const std::shared_ptr<CopyEngine>& lane, Work todo, WaitList after,
                          isthmus::Queue& queue) {
  Agenda next;
  const auto made = make_ref<Operation>(shared_from_this(), lane, std::move(todo));
  // Nothing may fail once the operation is in its lane: later operations would wait indefinitely.
  auto waits = dependencies(made, after);
  auto begun = std::make_unique<PassedEvent>(made);
  std::uint32_t foreign = 0;
  for (const auto& each : waits) {
    foreign += each.simulated == nullptr ? 1 : 0;
    if (each.simulated != nullptr) {
      made->waits_.push_back(std::make_unique<Demanded>(Ref<Operation>{each.simulated}));
    }
  }
  {
    const std::lock_guard hold{lock_};
    enqueue(made, waits.size(), foreign, queue);
  }
  for (auto& each : waits) {
    if (each.simulated != nullptr) {
      each.simulated->engine().depend(*each.simulated, std::move(each.waiting), next);
    } else {
      each.before->on_complete(*each.foreign.release());
    }
  }
  next.releases.push_back(std::move(begun));
  return made;
}

void Engine::look(Operation& at) noexcept {
  Agenda next;
  const std::lock_guard hold{lock_};
  heed_loss(next);
  timeline_.pass(k_call_ns);
  // The first poll of an operation that no thread waits for finds it pending, so that a program
  // which polls only once cannot pass its tests.
  if (!at.passed_ && ++at.looks_ > 1) {
    next.demand = {Ref<Operation>{&at}, false};
  }
  retire_due(next);
}

void Engine::demand(Operation& wanted) noexcept {
  Agenda next;
  const std::lock_guard hold{lock_};
  heed_loss(next);
  next.demand = {Ref<Operation>{&wanted}, true};
}

void Engine::drain(const void* context) noexcept {
  const auto concerned = [context](const CopyEngine& lane) {
    return context == nullptr || lane.context == context;
  };
  {
    Agenda next;
    const std::lock_guard hold{lock_};
    for (const auto& on : lanes_) {
      if (concerned(*on)) {
        want(*on, on->next_number, next);
        next.go_on(*this, on);
      }
    }
  }
  Agenda next;
  const std::lock_guard hold{lock_};
  const auto abandoned =
      fail(ISTHMUS_ERROR_ABANDONED,
           "{} was destroyed while this operation waited for an event of another device", filter_);
  for (const auto& on : lanes_) {
    if (concerned(*on) && !on->busy) {
      fail_waiting(*on, abandoned, next);
    }
  }
  for (const auto* done = ending_; done != nullptr; done = done->next_) {
    if (concerned(*done->lane_)) {
      timeline_.reach(done->times_.ended_ns);
    }
  }
  retire_due(next);
}

}  // namespace isthmus::sim
