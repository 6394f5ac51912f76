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
class foreign_passed final : public continuation {
 public:
  explicit foreign_passed(std::unique_ptr<passed_event> waiting) noexcept
      : waiting_{std::move(waiting)} {}

  void run(event& completed) noexcept override {
    {
      agenda next;
      waiting_->foreign = true;
      waiting_->failure = completed.outcome();
      next.releases.push_back(std::move(waiting_));
    }
    delete this;
  }

 private:
  std::unique_ptr<passed_event> waiting_;
};

// How an operation learns that an event it waits for has passed.
struct dependency {
  event* before = nullptr;
  operation* simulated = nullptr;           // `before`, if it is simulated
  std::unique_ptr<passed_event> waiting;    // for a simulated event
  std::unique_ptr<foreign_passed> foreign;  // for another event
};

std::vector<dependency> dependencies(const ref<operation>& of, wait_list after) {
  std::vector<dependency> all;
  all.reserve(after.size());
  for (const auto& before : after) {
    auto& each = all.emplace_back();
    each.before = before.get();
    const auto awaited = awaited_event::of(*before);
    each.simulated = awaited.simulated;
    each.waiting = std::make_unique<passed_event>(of);
    each.waiting->order_only = awaited.order_only;
    if (each.simulated == nullptr) {
      each.foreign = std::make_unique<foreign_passed>(std::move(each.waiting));
    }
  }
  return all;
}

}  // namespace

engine::engine(std::string filter, const options& chosen)
    : filter_{std::move(filter)},
      timeline_{chosen},
      when_{chosen.when},
      random_{chosen.seed},
      capacity_{chosen.capacity} {
  change(chosen);
}

// An agenda declared before the lock guard is worked off after the lock was released.
result<void> engine::begin(call kind) {
  agenda next;
  const std::lock_guard hold{lock_};
  heed_loss(next);
  if (lost_ && kind != call::free) {
    return lost_error();
  }
  if (auto failed = log_.record(kind, filter_)) {
    return failed;
  }
  return {};
}

void engine::change(const options& wanted) {
  agenda next;
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

std::uint64_t engine::calls(call kind) const {
  const std::lock_guard hold{lock_};
  return log_.made(kind);
}

simulation_state engine::state() const {
  const std::lock_guard hold{lock_};
  return {timeline_.now(), device_bytes_, host_bytes_};
}

result<memory_info> engine::memory() const {
  const std::lock_guard hold{lock_};
  if (lost_ || log_.lost()) {
    return lost_error();
  }
  return memory_info{capacity_ - device_bytes_, capacity_};
}

result<void> engine::reserve(const allocation_request& request) {
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

void engine::give_back(usm_kind kind, std::size_t nbytes) noexcept {
  const std::lock_guard hold{lock_};
  (kind == ISTHMUS_KIND_DEVICE ? device_bytes_ : host_bytes_) -= nbytes;
}

void engine::record_violation() noexcept {
  const std::lock_guard hold{lock_};
  log_.record_violation();
}

std::shared_ptr<lane> engine::add_lane(const void* context) {
  auto made = std::make_shared<lane>();
  made->context = context;
  const std::lock_guard hold{lock_};
  lanes_.push_back(made);
  return made;
}

void engine::orphan(const std::shared_ptr<lane>& on) noexcept {
  const std::lock_guard hold{lock_};
  on->orphan = true;
  if (on->waiting.empty()) {
    std::erase(lanes_, on);
  }
}

ref<event> engine::submit(const std::shared_ptr<lane>& on, work todo, wait_list after,
                          isthmus::queue& from) {
  agenda next;
  const auto made = make_ref<operation>(shared_from_this(), on, std::move(todo));
  // Nothing may fail once the operation is in its lane: later operations would wait indefinitely.
  auto waits = dependencies(made, after);
  auto begun = std::make_unique<passed_event>(made);
  std::uint32_t foreign = 0;
  for (const auto& each : waits) {
    foreign += each.simulated == nullptr ? 1 : 0;
    if (each.simulated != nullptr) {
      made->waits_.push_back(std::make_unique<demanded>(ref<operation>{each.simulated}));
    }
  }
  {
    const std::lock_guard hold{lock_};
    enqueue(made, waits.size(), foreign, from);
  }
  for (auto& each : waits) {
    if (each.simulated != nullptr) {
      each.simulated->home().depend(*each.simulated, std::move(each.waiting), next);
    } else {
      each.before->on_complete(*each.foreign.release());
    }
  }
  next.releases.push_back(std::move(begun));
  return made;
}

void engine::look(operation& at) noexcept {
  agenda next;
  const std::lock_guard hold{lock_};
  heed_loss(next);
  timeline_.pass(k_call_ns);
  // The first poll of an operation that no thread waits for finds it pending, so that a program
  // which polls only once cannot pass its tests.
  if (!at.passed_ && ++at.looks_ > 1) {
    next.demand = {ref<operation>{&at}, false};
  }
  retire_due(next);
}

void engine::demand(operation& wanted) noexcept {
  agenda next;
  const std::lock_guard hold{lock_};
  heed_loss(next);
  next.demand = {ref<operation>{&wanted}, true};
}

void engine::drain(const void* context) noexcept {
  const auto concerned = [context](const lane& on) {
    return context == nullptr || on.context == context;
  };
  {
    agenda next;
    const std::lock_guard hold{lock_};
    for (const auto& on : lanes_) {
      if (concerned(*on)) {
        want(*on, on->next_number, next);
        next.go_on(*this, on);
      }
    }
  }
  agenda next;
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
