// SPDX-License-Identifier: Apache-2.0
#include "backend/event.hpp"

#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "backend/event_poller.hpp"
#include "backend/function_waits.hpp"
#include "core/interrupt.hpp"
#include "core/never_destroyed.hpp"
#include "core/tls.hpp"
#include "os/futex.hpp"
#include "os/process.hpp"
#include "recorder/observers.hpp"

namespace isthmus {
namespace {

// How many calls that run continuations are nested on this thread. Every deallocation reads this
// variable; the general thread-local storage model would add a function call to each access.
ISTHMUS_TLS_MODEL thread_local constinit int continuations_running = 0;

// Marks the stack of continuations of a completed event.
class ClosedStack final : public Continuation {
 public:
  void run(Event&) noexcept override {}
};
Continuation& closed() noexcept {
  static NeverDestroyed<ClosedStack> mark;  // must outlive every thread
  return *mark;
}

// Emits `wait` when it is destroyed. Reads the clock only if an observer wants that.
class ObservedWait {
 public:
  explicit ObservedWait(const Event& event) noexcept
      : event_{event},
        begin_{is_observed(MemoryEventKind::wait) ? os::Clock::now() : os::Clock::time_point{}} {}
  ObservedWait(const ObservedWait&) = delete;
  ObservedWait& operator=(const ObservedWait&) = delete;
  ~ObservedWait() {
    if (begin_ != os::Clock::time_point{}) [[unlikely]] {
      emit({.kind = MemoryEventKind::wait,
            .address = &event_,
            .duration_ns = static_cast<std::uint64_t>(
                std::chrono::nanoseconds{os::Clock::now() - begin_}.count())});
    }
  }

 private:
  const Event& event_;
  const os::Clock::time_point begin_;
};

// Checks a wait without a deadline of a thread that runs a function on a queue. Without memory, the
// wait is not checked: callers rely on its end, for example before they free memory that the
// operation uses.
Result<void> check_wait(const Event& event, const os::Deadline& until,
                        FunctionWait& checked) noexcept try {
  if (!is_in_function() || until || event.settled()) [[likely]] {
    return {};
  }
  std::vector<QueuePosition> positions;
  event.add_positions(positions);
  return checked.begin(positions);
} catch (const std::bad_alloc&) {
  return {};
}

}  // namespace

Event::~Event() = default;

Status Event::poll() noexcept {
  if (!settled()) {
    refresh();
    if (state_.load(std::memory_order_acquire) == k_completing) {
      wait_for_publication();
    }
  }
  if (!settled()) {
    return ISTHMUS_PENDING;
  }
  return error_.code();
}

// Waits for the thread that is completing this event and has a few instructions left until it
// publishes the outcome. Returning PENDING instead would be wrong: events of later operations on
// the queue may have completed already. Does not wait in a forked child, where that thread does not
// exist.
void Event::wait_for_publication() noexcept {
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  while (state_.load(std::memory_order_seq_cst) == k_completing && !os::is_forked_child()) {
    os::futex_wait(state_, k_completing, std::nullopt);
  }
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

bool Event::complete(Error outcome) noexcept {
  std::uint32_t expected = k_pending;
  if (!state_.compare_exchange_strong(expected, k_completing, std::memory_order_acquire)) {
    return false;
  }
  const auto final_state = outcome ? k_failed : k_succeeded;
  error_ = std::move(outcome);
  // Sequentially consistent, like the accesses to `sleepers_`: either this thread observes the
  // sleeper, or the sleeper observes the new state.
  state_.store(final_state, std::memory_order_seq_cst);
  // A continuation may drop the last reference to this event.
  const Ref<Event> self{this};
  if (sleepers_.load(std::memory_order_seq_cst) != 0) {
    os::futex_wake_all(state_);
  }
  auto* continuation = continuations_.exchange(&closed(), std::memory_order_acq_rel);
  Continuation* last = nullptr;
  ++continuations_running;
  while (continuation != nullptr) {
    auto* const next = continuation->next_;
    if (continuation->turn_ == Continuation::Turn::last) {
      continuation->next_ = std::exchange(last, continuation);
    } else {
      continuation->run(*this);
    }
    continuation = next;
  }
  // The program completes a host event where its own code may run.
  const bool may_run_program = last != nullptr && dynamic_cast<HostEvent*>(this) != nullptr;
  continuations_running -= may_run_program ? 1 : 0;
  while (last != nullptr) {
    std::exchange(last, last->next_)->run(*this);
  }
  continuations_running -= may_run_program ? 0 : 1;
  if (final_state == k_failed && watched_handles_.load(std::memory_order_seq_cst) == 1) {
    log_dropped_failure();
  }
  return true;
}

void Event::retain_handle() noexcept {
  if (watched_handles_.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    watched_handles_.fetch_add(1, std::memory_order_relaxed);
  }
  retain();
}

void Event::release_handle() noexcept {
  if (watched_handles_.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    const bool is_last = watched_handles_.fetch_sub(1, std::memory_order_seq_cst) == 2;
    if (is_last && state_.load(std::memory_order_seq_cst) == k_failed) {
      log_dropped_failure();
    }
  }
  release();
}

// A function that did not run because the program ends has not failed.
void Event::log_dropped_failure() noexcept {
  if (error_.code() != ISTHMUS_ERROR_CLOSED &&
      !reported_.exchange(true, std::memory_order_relaxed)) {
    std::fprintf(stderr, "isthmus: a function on a queue failed, and its event was dropped: %s\n",
                 error_.message());
  }
}

bool Event::add_continuation(Continuation& continuation) noexcept {
  auto* head = continuations_.load(std::memory_order_acquire);
  do {
    if (head == &closed()) {
      continuation.run(*this);
      return false;
    }
    continuation.next_ = head;
  } while (!continuations_.compare_exchange_weak(head, &continuation, std::memory_order_acq_rel,
                                                 std::memory_order_acquire));
  return true;
}

void Event::on_complete(Continuation& continuation) noexcept {
  const Ref<Event> self{this};  // the continuation may hold the last other reference
  if (add_continuation(continuation)) {
    arm();
  }
}

void Event::on_complete_lazily(Continuation& continuation) noexcept {
  const Ref<Event> self{this};
  if (add_continuation(continuation)) {
    arm_lazily();
  }
}

Result<void> Event::wait(const os::Deadline& until) {
  if (poll() == ISTHMUS_PENDING) {
    FunctionWait checked;
    ISTHMUS_TRY(check_wait(*this, until, checked));
    block_observed(until);
  }
  return outcome_so_far();
}

Result<void> Event::wait_unchecked(const os::Deadline& until) {
  if (poll() == ISTHMUS_PENDING) {
    block_observed(until);
  }
  return outcome_so_far();
}

void Event::block_observed(const os::Deadline& until) noexcept {
  const ObservedWait observed{*this};
  block(until);
}

Result<void> Event::outcome_so_far() {
  if (poll() == ISTHMUS_PENDING) {
    return fail(ISTHMUS_ERROR_TIMEOUT,
                "the timeout expired before the operation completed; the operation continues: wait "
                "again, or with a longer timeout");
  }
  return outcome();
}

Result<bool> Event::wait_interruptibly(const os::Deadline& until) {
  FunctionWait checked;
  ISTHMUS_TRY(check_wait(*this, until, checked));
  return wait_in_slices(until, [this](const os::Deadline& slice) {
    static_cast<void>(wait_unchecked(slice));  // the operation's failure does not matter here
    return settled();
  });
}

void Event::block(const os::Deadline& until) noexcept {
  ensure_poller_started();  // this event may depend on one that needs the polling thread
  arm();
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  while (!settled()) {
    const auto observed = state_.load(std::memory_order_seq_cst);
    const auto next_poll = next_poll_deadline(until);
    if (observed >= k_succeeded || os::futex_wait(state_, observed, next_poll)) {
      continue;
    }
    if (next_poll == until) {
      break;
    }
    poll_without_thread();
  }
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

Result<EventTimes> Event::times() {
  if (pending()) {
    return fail(ISTHMUS_PENDING,
                "the operation has not completed: its times are available afterwards");
  }
  return do_times();
}

Result<EventTimes> Event::do_times() {
  return fail(ISTHMUS_ERROR_UNSUPPORTED, "this event records no times");
}

Error failed_events_have_no_time() {
  return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
              "an event that failed has no time: wait for it to get its error");
}

Result<std::int64_t> Event::elapsed_since(Event& earlier) {
  ISTHMUS_EXPECTS(settled() && earlier.settled());
  auto begin = earlier.times();
  ISTHMUS_TRY(begin);
  auto end = times();
  ISTHMUS_TRY(end);
  if (clock() == nullptr || clock() != earlier.clock()) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "the two events belong to devices whose clocks cannot be compared: mark "
                "the beginning and the end on queues of one device");
  }
  if (!succeeded() || !earlier.succeeded()) {
    return failed_events_have_no_time();
  }
  return static_cast<std::int64_t>(end->ended_ns - begin->ended_ns);
}

void HostEvent::retain_handle() noexcept {
  handles_.fetch_add(1, std::memory_order_relaxed);
  retain();
}

void HostEvent::release_handle() noexcept {
  if (handles_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    try {
      complete(fail(ISTHMUS_ERROR_ABANDONED,
                    "a host event was dropped before it was completed: call complete() first"));
    } catch (...) {
      complete({});
    }
  }
  release();
}

void Event::add_positions(std::vector<QueuePosition>& out) const {
  if (position_.queue != 0) {
    out.push_back(position_);
  }
}

void LibraryEvent::add_positions(std::vector<QueuePosition>& out) const {
  Event::add_positions(out);
  out.insert(out.end(), followed_.begin(), followed_.end());
}

void LibraryEvent::follow(WaitList events) {
  if (has_pending_functions()) {
    add_followed_functions(positions_of(events), followed_);
  }
}

std::vector<QueuePosition> positions_of(WaitList events) {
  std::vector<QueuePosition> positions;
  for (const auto& each : events) {
    each->add_positions(positions);
  }
  return positions;
}

Error failed_dependency(const Error& cause) {
  return fail(ISTHMUS_ERROR_DEPENDENCY,
              "the operation did not run, because an event that it waited for failed: {}",
              cause.message());
}

Result<void> wait_for_all(WaitList events) {
  for (const auto& dependency : events) {
    if (auto result = dependency->wait(std::nullopt); !result) {
      return dependency->settled() ? failed_dependency(result.failure()) : result.take_error();
    }
  }
  return {};
}

void wait_until_ended(WaitList events) {
  for (const auto& dependency : events) {
    static_cast<void>(dependency->wait_unchecked(std::nullopt));
  }
}

Result<void> wait_until_ended(WaitList events, const os::Deadline& until) {
  for (const auto& dependency : events) {
    // TIMEOUT may also be the operation's own error; then the event has completed.
    if (auto result = dependency->wait(until); !result && !dependency->settled()) {
      return result;
    }
  }
  return {};
}

Result<void> wait_until_ended_interruptibly(WaitList events) {
  for (const auto& dependency : events) {
    ISTHMUS_TRY(dependency->wait_interruptibly(std::nullopt));
  }
  return {};
}

namespace {

// Counts the completions of several events. The last completion completes `zero_`.
class Countdown {
 public:
  Countdown(std::size_t events, bool reports_failure)
      : remaining_{events}, failed_{!reports_failure} {}

  [[nodiscard]] const Ref<LibraryEvent>& zero() const noexcept { return zero_; }
  void count_event(Event& ended) noexcept {
    if (!ended.succeeded() && !failed_.exchange(true, std::memory_order_relaxed)) {
      failure_ = ended.outcome();  // visible to the thread that reaches zero
    }
    if (remaining_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      zero_->finish(std::move(failure_));
      delete this;
    }
  }

 private:
  Ref<LibraryEvent> zero_ = make_ref<LibraryEvent>();
  std::atomic<std::size_t> remaining_;
  std::atomic<bool> failed_;  // initially true if failures are ignored
  Error failure_;
};

// Holds a reference to its event until completion, since there may be no other one.
class Step final : public Continuation {
 public:
  Step(Countdown& countdown, Ref<Event> event) : countdown_{countdown}, event_{std::move(event)} {}
  void run(Event& ended) noexcept override {
    countdown_.count_event(ended);
    delete this;
  }

 private:
  Countdown& countdown_;
  Ref<Event> event_;
};

Ref<Event> count_down(WaitList events, bool reports_failure) {
  if (events.empty()) {
    return completed_event();
  }
  auto countdown = std::make_unique<Countdown>(events.size(), reports_failure);
  countdown->zero()->follow(events);
  std::vector<std::unique_ptr<Step>> steps;
  steps.reserve(events.size());
  for (const auto& each : events) {
    steps.push_back(std::make_unique<Step>(*countdown, each));
  }
  const Ref<Event> zero{countdown.release()->zero()};
  for (std::size_t index = 0; index < events.size(); ++index) {
    events[index]->on_complete(*steps[index].release());
  }
  return zero;
}

}  // namespace

Ref<Event> end_of_all(WaitList events) { return count_down(events, false); }

Ref<Event> outcome_of_all(WaitList events) { return count_down(events, true); }

bool in_continuation() noexcept { return continuations_running != 0; }

Ref<Event> completed_event() {
  static HostEvent* const done = [] {
    auto* event = new HostEvent;
    event->finish({});
    return event;
  }();
  return Ref<Event>{done};
}

}  // namespace isthmus
