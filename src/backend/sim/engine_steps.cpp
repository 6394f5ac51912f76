// How an engine leads operations from submission to their end.
#include <algorithm>

#include "backend/sim/engine.hpp"

namespace isthmus::sim {
namespace {

// SplitMix64: small, and the same everywhere.
std::uint64_t draw(std::uint64_t& state) noexcept {
  std::uint64_t mixed = state += 0x9E3779B97F4A7C15U;
  mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9U;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBU;
  return mixed ^ (mixed >> 31U);
}

bool any_freed(const work& todo) noexcept {
  return (todo.destination.of && todo.destination.of->freed()) ||
         (todo.source.of && todo.source.of->freed());
}

error used_after_free() {
  return {ISTHMUS_ERROR_DRIVER,
          "use after free: memory of this operation was freed before it had ended"};
}

void begin_use(const place& end) {
  if (end.of) {
    end.of->begin_use(end.offset, end.nbytes);
  }
}

void end_use(const place& end) noexcept {
  if (end.of) {
    end.of->end_use(end.offset, end.nbytes);
  }
}

}  // namespace

error engine::lost_error() const {
  return {ISTHMUS_ERROR_DEVICE_LOST, filter_ +
                                         " is lost, as the option 'lost' asked: nothing but frees "
                                         "can be done with it"};
}

bool engine::is_early() {
  if (when_ == effect::random) {
    return draw(random_) % 2 == 0;
  }
  return when_ == effect::early || lost_;
}

void engine::enqueue(const ref<operation>& submitted, wait_list after, isthmus::queue& from) {
  auto& made = *submitted;
  auto& on = *made.lane_;
  timeline_.pass(k_call_ns);
  made.times_.submitted_ns = timeline_.now();
  made.early_ = is_early();
  made.number_ = on.next_number++;
  for (const auto& before : after) {
    ++made.blockers_;
    if (auto* simulated = awaited_event::of(*before).simulated) {
      made.waits_.emplace_back(simulated);
    } else {
      ++made.foreign_;
    }
  }
  if (made.foreign_ != 0) {
    made.keep_ = ref<isthmus::queue>{&from};
  }
  begin_use(made.work_.destination);
  try {
    begin_use(made.work_.source);
  } catch (const std::bad_alloc&) {
    end_use(made.work_.destination);
    throw;
  }
  on.waiting.push_back(submitted);
}

// Called on the engine of the event that is waited for.
void engine::depend(operation& on, dependent later, agenda& next) {
  const std::lock_guard hold{lock_};
  if (!on.passed_) {
    on.dependents_.push_back(std::move(later));
    return;
  }
  auto& waiting = later.waiting;
  if (&waiting->home() != this) {
    // Devices have clocks of their own: another one begins only once this one's time has come.
    timeline_.reach(on.times_.ended_ns);
    retire_due(next);
  }
  const auto ended = &waiting->home() == this ? on.times_.ended_ns : 0;
  next.releases.push_back(
      {std::move(waiting), false, ended, later.order_only ? error{} : on.failure_});
}

void engine::pass_event(const release& passed, agenda& next) {
  auto& waiting = *passed.waiting;
  const std::lock_guard hold{lock_};
  if (passed.foreign) {
    waiting.ready_ns_ = std::max(waiting.ready_ns_, timeline_.now());
    if (--waiting.foreign_ == 0) {
      next.kept.push_back(std::move(waiting.keep_));
    }
  }
  waiting.ready_ns_ = std::max(waiting.ready_ns_, passed.not_before_ns);
  if (passed.failure && !waiting.broken_) {
    waiting.broken_ = failed_dependency(passed.failure);
  }
  if (--waiting.blockers_ == 0 && !waiting.passed_) {
    next.lanes.push_back({shared_from_this(), waiting.lane_});
  }
}

void engine::hurry(const demanded& order, agenda& next) {
  auto& wanted = *order.wanted;
  const std::lock_guard hold{lock_};
  wanted.awaited_ = wanted.awaited_ || order.to_the_end;
  if (!wanted.passed_) {
    want(*wanted.lane_, wanted.number_ + 1, next);
    next.lanes.push_back({shared_from_this(), wanted.lane_});
  } else if (order.to_the_end) {
    timeline_.reach(wanted.times_.ended_ns);
    retire_due(next);
  }
}

// What stands before it in the lane is wanted with it, and all that these wait for.
void engine::want(lane& on, std::uint64_t below, agenda& next) {
  const auto is_wanted = [&](const ref<operation>& held) {
    return held->number_ < on.wanted_below;
  };
  auto at = std::partition_point(on.waiting.begin(), on.waiting.end(), is_wanted);
  for (; at != on.waiting.end() && (*at)->number_ < below; ++at) {
    for (const auto& before : (*at)->waits_) {
      next.demands.push_back({before, false});
    }
  }
  on.wanted_below = std::max(on.wanted_below, below);
}

bool engine::may_run(const lane& on) const {
  if (on.busy || on.waiting.empty()) {
    return false;
  }
  const auto& head = *on.waiting.front();
  return head.blockers_ == 0 && (head.early_ || head.number_ < on.wanted_below);
}

error engine::verdict(operation& head) const {
  if (lost_) {
    return lost_error();
  }
  if (head.broken_) {
    return head.broken_;
  }
  return any_freed(head.work_) ? used_after_free() : error{};
}

void engine::run(const std::shared_ptr<lane>& on, agenda& next) {
  std::unique_lock hold{lock_};
  while (may_run(*on)) {
    const auto head = on->waiting.front();
    auto failure = verdict(*head);
    if (!failure) {
      on->busy = true;
      hold.unlock();
      perform(head->work_);
      hold.lock();
      on->busy = false;
      failure = lost_ ? lost_error() : error{};
    }
    on->waiting.pop_front();
    pass(head, std::move(failure), next);
    if (lost_) {
      fail_waiting(*on, lost_error(), next);
    }
  }
  if (on->orphan && on->waiting.empty()) {
    std::erase(lanes_, on);
  }
  retire_due(next);
}

void engine::pass(const ref<operation>& done, error failure, agenda& next) {
  auto& on = *done->lane_;
  const auto ready = std::max(done->ready_ns_, on.end_ns);
  const auto over = failure ? route::none : done->work_.over;
  done->times_ = timeline_.occupy(over, done->work_.nbytes, done->times_.submitted_ns, ready);
  on.end_ns = done->times_.ended_ns;
  done->passed_ = true;
  done->failure_ = std::move(failure);
  std::move(done->waits_.begin(), done->waits_.end(), std::back_inserter(next.dropped));
  done->waits_.clear();
  for (auto& later : std::exchange(done->dependents_, {})) {
    const bool here = &later.waiting->home() == this;
    done->awaited_ = done->awaited_ || !here;
    const auto ended = here ? done->times_.ended_ns : 0;
    next.releases.push_back(
        {std::move(later.waiting), false, ended, later.order_only ? error{} : done->failure_});
  }
  if (done->awaited_) {
    timeline_.reach(done->times_.ended_ns);
  }
  const auto later = [](std::uint64_t end, const ref<operation>& other) {
    return end < other->times_.ended_ns;
  };
  ending_.insert(std::upper_bound(ending_.begin(), ending_.end(), done->times_.ended_ns, later),
                 done);
}

void engine::retire(ref<operation> done, agenda& next) {
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
  next.spent.push_back(std::exchange(done->work_, {}));
  next.ended.push_back(std::move(done));
}

// A lost device's operations end at once.
void engine::retire_due(agenda& next) {
  while (!ending_.empty() && (lost_ || ending_.front()->times_.ended_ns <= timeline_.now())) {
    auto due = std::move(ending_.front());
    ending_.pop_front();
    retire(std::move(due), next);
  }
}

// Pre: the lane is not busy.
void engine::fail_waiting(lane& on, const error& why, agenda& next) {
  for (const auto& waiting : std::exchange(on.waiting, {})) {
    next.kept.push_back(std::move(waiting->keep_));
    pass(waiting, why, next);
    next.dropped.push_back(waiting);
  }
}

// A busy lane learns of it once its bytes have moved: what stands behind them must not end before.
void engine::heed_loss(agenda& next) {
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
