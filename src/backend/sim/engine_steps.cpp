// SPDX-License-Identifier: Apache-2.0
// The steps of an operation from its submission to its end.
#include <algorithm>

#include "backend/sim/engine.hpp"
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

bool any_freed(const Work& todo) noexcept {
  return (todo.destination.of && todo.destination.of->freed()) ||
         (todo.source.of && todo.source.of->freed());
}

Error used_after_free() {
  return {ISTHMUS_ERROR_DRIVER,
          "use after free: memory of this operation was freed before it had ended"};
}

void begin_use(const Place& end) {
  if (end.of) {
    end.of->begin_use(end.offset, end.nbytes);
  }
}

void end_use(const Place& end) noexcept {
  if (end.of) {
    end.of->end_use(end.offset, end.nbytes);
  }
}

}  // namespace

Error Engine::lost_error() const {
  return fail(ISTHMUS_ERROR_DEVICE_LOST,
              "{} is lost, as the option 'lost' requests: it accepts only frees", filter_);
}

bool Engine::is_early() {
  if (when_ == Effect::random) {
    return draw(random_) % 2 == 0;
  }
  return when_ == Effect::early || lost_;
}

// If it throws, nothing has changed.
void Engine::enqueue(const Ref<Operation>& submitted, std::size_t blockers, std::uint32_t foreign,
                     isthmus::Queue& queue) {
  auto& made = *submitted;
  auto& on = *made.lane_;
  on.waiting.push_back(submitted);
  Undo taken_out{[&] { on.waiting.pop_back(); }};
  begin_use(made.work_.destination);
  Undo unused{[&] { end_use(made.work_.destination); }};
  begin_use(made.work_.source);
  unused.dismiss();
  taken_out.dismiss();
  timeline_.pass(k_call_ns);
  made.times_.submitted_ns = timeline_.now();
  made.early_ = is_early();
  made.number_ = on.next_number++;
  made.blockers_ += static_cast<std::uint32_t>(blockers);
  made.foreign_ = foreign;
  if (made.foreign_ != 0) {
    made.keep_ = Ref<isthmus::Queue>{&queue};
  }
}

// Called on the engine of the event waited for.
void Engine::depend(Operation& operation, std::unique_ptr<PassedEvent> waiting,
                    Agenda& next) noexcept {
  const std::lock_guard hold{lock_};
  if (!operation.passed_) {
    operation.dependents_.push_back(std::move(waiting));
    return;
  }
  const bool here = &waiting->waiting->engine() == this;
  if (!here) {
    // Each device has its own clock: the other one begins only once this clock has reached the end.
    timeline_.reach(operation.times_.ended_ns);
    retire_due(next);
  }
  waiting->not_before_ns = here ? operation.times_.ended_ns : 0;
  waiting->failure = waiting->order_only ? Error{} : operation.failure_;
  next.releases.push_back(std::move(waiting));
}

void Engine::pass_event(PassedEvent& passed, Agenda& next) noexcept {
  auto& waiting = *passed.waiting;
  const std::lock_guard hold{lock_};
  if (passed.foreign) {
    waiting.ready_ns_ = std::max(waiting.ready_ns_, timeline_.now());
    if (--waiting.foreign_ == 0) {
      passed.kept = std::move(waiting.keep_);
    }
  }
  waiting.ready_ns_ = std::max(waiting.ready_ns_, passed.not_before_ns);
  if (passed.failure && !waiting.broken_) {
    waiting.broken_ = failed_dependency(passed.failure);
  }
  if (--waiting.blockers_ == 0 && !waiting.passed_) {
    next.go_on(*this, waiting.lane_);
  }
}

void Engine::hurry(const Demanded& order, Agenda& next) noexcept {
  auto& wanted = *order.wanted;
  const std::lock_guard hold{lock_};
  wanted.awaited_ = wanted.awaited_ || order.to_the_end;
  if (!wanted.passed_) {
    want(*wanted.lane_, wanted.number_ + 1, next);
    next.go_on(*this, wanted.lane_);
  } else if (order.to_the_end) {
    timeline_.reach(wanted.times_.ended_ns);
    retire_due(next);
  }
}

// Demands the earlier operations of the lane too, and everything that these wait for.
void Engine::want(CopyEngine& lane, std::uint64_t below, Agenda& next) noexcept {
  const auto is_wanted = [&](const Ref<Operation>& held) {
    return held->number_ < lane.wanted_below;
  };
  auto at = std::partition_point(lane.waiting.begin(), lane.waiting.end(), is_wanted);
  for (; at != lane.waiting.end() && (*at)->number_ < below; ++at) {
    next.demands.splice((*at)->waits_);
  }
  lane.wanted_below = std::max(lane.wanted_below, below);
}

bool Engine::may_run(const CopyEngine& lane) const {
  if (lane.busy || lane.waiting.empty()) {
    return false;
  }
  const auto& head = *lane.waiting.front();
  return head.blockers_ == 0 && (head.early_ || head.number_ < lane.wanted_below);
}

Error Engine::verdict(Operation& head) {
  if (lost_) {
    return lost_error();
  }
  if (head.broken_) {
    return head.broken_;
  }
  if (any_freed(head.work_)) {
    return used_after_free();
  }
  return head.work_.what == Action::nothing ? Error{} : log_.record_operation(filter_);
}

void Engine::run(const std::shared_ptr<CopyEngine>& lane, Agenda& next) noexcept {
  std::unique_lock hold{lock_};
  lane->keeps_home = nullptr;
  while (may_run(*lane)) {
    const auto head = lane->waiting.front();
    auto failure = verdict(*head);
    if (!failure) {
      lane->busy = true;
      hold.unlock();
      perform(head->work_);
      hold.lock();
      lane->busy = false;
      failure = lost_ ? lost_error() : Error{};
    }
    lane->waiting.pop_front();
    pass(head, std::move(failure), next);
    if (lost_) {
      fail_waiting(*lane, lost_error(), next);
    }
  }
  if (lane->orphan && lane->waiting.empty()) {
    std::erase(lanes_, lane);
  }
  retire_due(next);
}

void Engine::pass(const Ref<Operation>& done, Error failure, Agenda& next) noexcept {
  auto& on = *done->lane_;
  const auto ready = std::max(done->ready_ns_, on.end_ns);
  const auto over = failure ? Route::none : done->work_.over;
  done->times_ = timeline_.occupy(over, done->work_.nbytes, done->times_.submitted_ns, ready);
  on.end_ns = done->times_.ended_ns;
  done->passed_ = true;
  done->failure_ = std::move(failure);
  next.dropped.splice(done->waits_);
  while (!done->dependents_.empty()) {
    auto waiting = done->dependents_.pop_front();
    const bool here = &waiting->waiting->engine() == this;
    done->awaited_ = done->awaited_ || !here;
    waiting->not_before_ns = here ? done->times_.ended_ns : 0;
    waiting->failure = waiting->order_only ? Error{} : done->failure_;
    next.releases.push_back(std::move(waiting));
  }
  if (done->awaited_) {
    timeline_.reach(done->times_.ended_ns);
  }
  end_in_order(done);
}

// Most operations end last, hence the check of the list's end.
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
  done->kept_ = std::exchange(done->keep_, nullptr);
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

// Pre: the lane is not busy.
void Engine::fail_waiting(CopyEngine& lane, const Error& why, Agenda& next) noexcept {
  while (!lane.waiting.empty()) {
    const auto waiting = std::move(lane.waiting.front());
    lane.waiting.pop_front();
    pass(waiting, why, next);
  }
}

// A busy lane handles the loss once its bytes have moved: later operations must not end before
// that.
void Engine::heed_loss(Agenda& next) noexcept {
  if (lost_ || !log_.lost()) {
    return;
  }
  lost_ = true;
  for (const auto& on : lanes_) {
    if (!on->busy) {
      fail_waiting(*on, lost_error(), next);
    }
  }
  retire_due(next);
}

}  // namespace isthmus::sim
