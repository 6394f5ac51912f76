// What an engine is asked from outside: calls, sums of memory, submissions, looks and waits.
#include "backend/sim/engine.hpp"

#include <utility>

#include "core/sizes.hpp"

namespace isthmus::sim {
namespace {

// Tells an operation that something which is not simulated has completed.
class foreign_passed final : public continuation {
 public:
  explicit foreign_passed(ref<operation> waiting) noexcept : waiting_{std::move(waiting)} {}

  void run(event& completed) noexcept override {
    {
      agenda next;
      next.releases.push_back({waiting_, true, 0, completed.outcome()});
    }
    delete this;
  }

 private:
  ref<operation> waiting_;
};

}  // namespace

engine::engine(std::string filter, const options& chosen)
    : filter_{std::move(filter)},
      timeline_{chosen},
      when_{chosen.when},
      random_{chosen.seed},
      capacity_{chosen.capacity} {
  change(chosen);
}

// An agenda that is declared before the lock is worked off after it was given back. Made only where
// there is something to do: a free needs no memory.
result<void> engine::begin(call kind) {
  std::optional<agenda> next;
  const std::lock_guard hold{lock_};
  if (log_.lost() && !lost_) {
    heed_loss(next.emplace());
  }
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
  {
    const std::lock_guard hold{lock_};
    enqueue(made, after, from);
  }
  for (const auto& before : after) {
    if (const auto awaited = awaited_event::of(*before); awaited.simulated != nullptr) {
      awaited.simulated->home().depend(*awaited.simulated, {made, awaited.order_only}, next);
    } else {
      before->on_complete(*new foreign_passed{made});
    }
  }
  next.releases.push_back({made, false, 0, {}});
  return made;
}

void engine::look(operation& at) noexcept {
  agenda next;
  const std::lock_guard hold{lock_};
  heed_loss(next);
  timeline_.pass(k_call_ns);
  // The first look at what nobody waits for finds it unfinished: who looks once must not assume.
  if (!at.passed_ && ++at.looks_ > 1) {
    next.demands.push_back({ref<operation>{&at}, false});
  }
  retire_due(next);
}

void engine::demand(operation& wanted) noexcept {
  agenda next;
  const std::lock_guard hold{lock_};
  heed_loss(next);
  next.demands.push_back({ref<operation>{&wanted}, true});
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
        next.lanes.push_back({shared_from_this(), on});
      }
    }
  }
  agenda next;
  const std::lock_guard hold{lock_};
  const error abandoned{
      ISTHMUS_ERROR_ABANDONED,
      filter_ + " went while this operation waited for an event of another device"};
  for (const auto& on : lanes_) {
    if (concerned(*on) && !on->busy) {
      fail_waiting(*on, abandoned, next);
    }
  }
  for (const auto& done : ending_) {
    if (concerned(*done->lane_)) {
      timeline_.reach(done->times_.ended_ns);
    }
  }
  retire_due(next);
}

}  // namespace isthmus::sim
