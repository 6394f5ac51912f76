// SPDX-License-Identifier: Apache-2.0
// The steps of an operation from its submission to its end.
#include <algorithm>
#include <optional>
#include <utility>

#include "backend/sim/engine.hpp"
#include "core/expects.hpp"
#include "core/lock_guard.hpp"
#include "core/undo.hpp"

namespace isthmus::sim {
namespace {

// SplitMix64: small, and the same on every platform.
std::uint64_t draw(std::uint64_t& state) noexcept {
  std::uint64_t mixed = state += 0x9E3779B97F4A7C15U;
  mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9U;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBU;
  return mixed ^ (mixed >> 31U);
}

bool any_freed(const Work& work) noexcept {
  return (work.destination.allocation && work.destination.allocation->freed()) ||
         (work.source.allocation && work.source.allocation->freed());
}

Error used_after_free() {
  return {ISTHMUS_ERROR_DRIVER,
          "use after free: memory was freed before an operation that uses it had ended"};
}

void begin_use(const Endpoint& endpoint) {
  if (endpoint.allocation) {
    endpoint.allocation->begin_use(endpoint.offset, endpoint.nbytes);
  }
}

void end_use(const Endpoint& endpoint) noexcept {
  if (endpoint.allocation) {
    endpoint.allocation->end_use(endpoint.offset, endpoint.nbytes);
  }
}

}  // namespace

Error Engine::lost_error() const {
  return fail(ISTHMUS_ERROR_DEVICE_LOST,
              "{} is lost, as the option 'lost' requests: it accepts only frees", filter_);
}

bool Engine::is_early() {
  if (effect_ == Effect::random) {
    return draw(random_) % 2 == 0;
  }
  return effect_ == Effect::early || lost_;
}

// Applies demands first, so that all demanded operations are known before any of them runs. Keeps
// an engine alive while it runs: an operation that ends meanwhile may hold the last reference to
// the engine.
bool Engine::execute_step(Agenda& agenda) noexcept {
  if (agenda.demand) {
    const auto demanded = *std::exchange(agenda.demand, std::nullopt);
    demanded.operation->engine().apply_demand(demanded, agenda);
  } else if (!agenda.demands.empty()) {
    auto demanded = agenda.demands.pop_front();
    demanded->operation->engine().apply_demand(*demanded, agenda);
    agenda.dropped.push_back(std::move(demanded));
  } else if (!agenda.releases.empty()) {
    auto passed = agenda.releases.pop_front();
    passed->waiting->engine().pass_event(*passed, agenda);
    agenda.passed_events.push_back(std::move(passed));
  } else if (agenda.has_queue()) {
    const auto queue_operations = agenda.pop_queue();
    const auto engine = queue_operations->keep_alive;
    engine->run(queue_operations, agenda);
  } else if (!agenda.ended.empty()) {
    agenda.ended.pop_front()->end();
  } else {
    return false;
  }
  return true;
}

void Engine::execute(Agenda& agenda) noexcept {
  while (execute_step(agenda)) {
  }
  agenda.dropped.clear();
  agenda.passed_events.clear();
}

void Engine::schedule(const std::shared_ptr<QueueOperations>& queue_operations,
                      Agenda& next) noexcept {
  if (!queue_operations->keep_alive) {
    queue_operations->keep_alive = shared_from_this();
    next.push_queue(queue_operations);
  }
}

// Throws std::bad_alloc without any effect.
void Engine::enqueue(const Ref<Operation>& submitted, std::size_t blockers, std::uint32_t foreign,
                     isthmus::Queue& queue) {
  auto& operation = *submitted;
  auto& queue_operations = *operation.queue_operations_;
  queue_operations.waiting.push_back(submitted);
  Undo undo_push{[&] { queue_operations.waiting.pop_back(); }};
  begin_use(operation.work_.destination);
  Undo undo_use{[&] { end_use(operation.work_.destination); }};
  begin_use(operation.work_.source);
  undo_use.dismiss();
  undo_push.dismiss();
  timeline_.advance_by(k_call_ns);
  operation.times_.submitted_ns = timeline_.now();
  operation.early_ = is_early();
  operation.number_ = queue_operations.next_number++;
  operation.blockers_ += static_cast<std::uint32_t>(blockers);
  operation.foreign_ = foreign;
  if (operation.foreign_ != 0) {
    operation.queue_ = Ref<isthmus::Queue>{&queue};
  }
}

// Called on the engine of `operation`, for which `waiting` waits.
void Engine::depend(Operation& operation, std::unique_ptr<PassedEvent> waiting,
                    Agenda& next) noexcept {
  const LockGuard hold{lock_};
  if (!operation.passed_) {
    operation.dependents_.push_back(std::move(waiting));
    return;
  }
  const bool same_engine = &waiting->waiting->engine() == this;
  if (!same_engine) {
    // Each device has its own clock: an operation of another device starts only once this clock has
    // reached the end of `operation`.
    timeline_.advance_to(operation.times_.ended_ns);
    retire_due(next);
  }
  waiting->not_before_ns = same_engine ? operation.times_.ended_ns : 0;
  waiting->failure = waiting->order_only ? Error{} : operation.failure_;
  next.releases.push_back(std::move(waiting));
}

void Engine::pass_event(PassedEvent& passed, Agenda& next) noexcept {
  auto& waiting = *passed.waiting;
  const LockGuard hold{lock_};
  if (passed.foreign) {
    waiting.ready_ns_ = std::max(waiting.ready_ns_, timeline_.now());
    if (--waiting.foreign_ == 0) {
      passed.queue = std::move(waiting.queue_);
    }
  }
  waiting.ready_ns_ = std::max(waiting.ready_ns_, passed.not_before_ns);
  if (passed.failure && !waiting.dependency_failure_) {
    waiting.dependency_failure_ = failed_dependency(passed.failure);
  }
  if (--waiting.blockers_ == 0 && !waiting.passed_) {
    schedule(waiting.queue_operations_, next);
  }
}

void Engine::apply_demand(const Demanded& demanded, Agenda& next) noexcept {
  auto& operation = *demanded.operation;
  const LockGuard hold{lock_};
  operation.awaited_ = operation.awaited_ || demanded.to_the_end;
  if (!operation.passed_) {
    demand_below(*operation.queue_operations_, operation.number_ + 1, next);
    schedule(operation.queue_operations_, next);
  } else if (demanded.to_the_end) {
    timeline_.advance_to(operation.times_.ended_ns);
    retire_due(next);
  }
}

// Demands all operations below this number, and everything that they wait for.
void Engine::demand_below(QueueOperations& queue_operations, std::uint64_t below,
                          Agenda& next) noexcept {
  const auto is_demanded = [&](const Ref<Operation>& operation) {
    return operation->number_ < queue_operations.demanded_below;
  };
  auto it = std::partition_point(queue_operations.waiting.begin(), queue_operations.waiting.end(),
                                 is_demanded);
  for (; it != queue_operations.waiting.end() && (*it)->number_ < below; ++it) {
    next.demands.splice((*it)->waits_);
  }
  queue_operations.demanded_below = std::max(queue_operations.demanded_below, below);
}

bool Engine::may_run(const QueueOperations& queue_operations) const {
  if (queue_operations.busy || queue_operations.waiting.empty()) {
    return false;
  }
  const auto& head = *queue_operations.waiting.front();
  return head.blockers_ == 0 && (head.early_ || head.number_ < queue_operations.demanded_below);
}

Error Engine::check_operation(Operation& head) {
  if (lost_) {
    return lost_error();
  }
  if (head.dependency_failure_) {
    return head.dependency_failure_;
  }
  if (any_freed(head.work_)) {
    return used_after_free();
  }
  return head.work_.action == Action::none ? Error{} : log_.record_operation(filter_);
}

void Engine::run(const std::shared_ptr<QueueOperations>& queue_operations, Agenda& next) noexcept {
  UniqueLock hold{lock_};
  queue_operations->keep_alive = nullptr;
  while (may_run(*queue_operations)) {
    const auto head = queue_operations->waiting.front();
    auto failure = check_operation(*head);
    if (!failure) {
      queue_operations->busy = true;
      hold.unlock();
      perform(head->work_);
      hold.lock();
      queue_operations->busy = false;
      failure = lost_ ? lost_error() : Error{};
    }
    queue_operations->waiting.pop_front();
    pass(head, std::move(failure), next);
    if (lost_) {
      fail_waiting(*queue_operations, lost_error(), next);
    }
  }
  if (queue_operations->queue_destroyed && queue_operations->waiting.empty()) {
    std::erase(all_queue_operations_, queue_operations);
  }
  retire_due(next);
}

void Engine::pass(const Ref<Operation>& done, Error failure, Agenda& next) noexcept {
  auto& queue_operations = *done->queue_operations_;
  const auto ready = std::max(done->ready_ns_, queue_operations.end_ns);
  const auto route = failure ? Route::none : done->work_.route;
  done->times_ = timeline_.occupy(route, done->work_.nbytes, done->times_.submitted_ns, ready);
  queue_operations.end_ns = done->times_.ended_ns;
  done->passed_ = true;
  done->failure_ = std::move(failure);
  next.dropped.splice(done->waits_);
  while (!done->dependents_.empty()) {
    auto waiting = done->dependents_.pop_front();
    const bool same_engine = &waiting->waiting->engine() == this;
    done->awaited_ = done->awaited_ || !same_engine;
    waiting->not_before_ns = same_engine ? done->times_.ended_ns : 0;
    waiting->failure = waiting->order_only ? Error{} : done->failure_;
    next.releases.push_back(std::move(waiting));
  }
  if (done->awaited_) {
    timeline_.advance_to(done->times_.ended_ns);
  }
  end_in_order(done);
}

// Checks the end of the list first, since most operations end last.
void Engine::end_in_order(const Ref<Operation>& done) noexcept {
  auto* const added = Ref<Operation>{done}.detach();
  const auto end = added->times_.ended_ns;
  auto** link = &ending_;
  if (ending_ != nullptr && ending_last_->times_.ended_ns <= end) {
    link = &ending_last_->next_;
  }
  while (*link != nullptr && (*link)->times_.ended_ns <= end) {
    link = &(*link)->next_;
  }
  added->next_ = std::exchange(*link, added);
  ending_last_ = added->next_ == nullptr ? added : ending_last_;
}

void Engine::retire(const Ref<Operation>& done, Agenda& next) noexcept {
  if (lost_) {
    auto& times = done->times_;
    times.ended_ns = std::min(times.ended_ns, timeline_.now());
    times.started_ns = std::min(times.started_ns, times.ended_ns);
  }
  if (!done->failure_ && lost_) {
    done->failure_ = lost_error();
  } else if (!done->failure_ && any_freed(done->work_)) {
    done->failure_ = used_after_free();
  }
  end_use(done->work_.destination);
  end_use(done->work_.source);
  done->released_queue_ = std::exchange(done->queue_, nullptr);
  done->retired_ = true;
  next.ended.push_back(done);
}

// On a lost device all operations end at once.
void Engine::retire_due(Agenda& next) noexcept {
  while (ending_ != nullptr && (lost_ || ending_->times_.ended_ns <= timeline_.now())) {
    const auto due = Ref<Operation>::adopt(ending_);
    ending_ = std::exchange(due->next_, nullptr);
    retire(due, next);
  }
}

void Engine::fail_waiting(QueueOperations& queue_operations, const Error& error,
                          Agenda& next) noexcept {
  ISTHMUS_EXPECTS(!queue_operations.busy);
  while (!queue_operations.waiting.empty()) {
    const auto waiting = std::move(queue_operations.waiting.front());
    queue_operations.waiting.pop_front();
    pass(waiting, error, next);
  }
}

// If a `QueueOperations` is busy, the thread that moves its bytes handles the loss afterwards:
// later operations must not end before that.
void Engine::handle_loss(Agenda& next) noexcept {
  if (lost_ || !log_.lost()) {
    return;
  }
  lost_ = true;
  for (const auto& queue_operations : all_queue_operations_) {
    if (!queue_operations->busy) {
      fail_waiting(*queue_operations, lost_error(), next);
    }
  }
  retire_due(next);
}

}  // namespace isthmus::sim
