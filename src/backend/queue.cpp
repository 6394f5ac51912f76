// SPDX-License-Identifier: Apache-2.0
#include "backend/queue.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "backend/order_only.hpp"
#include "backend/platform.hpp"
#include "core/promised_room.hpp"
#include "core/sizes.hpp"
#include "core/undo.hpp"
#include "os/process.hpp"

namespace isthmus {
namespace {

// Far longer than a driver or the host lacks memory while other code frees some.
constexpr std::chrono::milliseconds k_follows_for{1000};

std::uint64_t next_serial() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

Queue::Queue(Context& context, Device& device, bool part)
    : RefCounted{part ? &context.platform() : nullptr},
      context_{context},
      device_{device},
      serial_{next_serial()} {
  if (!part) {
    keep_ = Ref<Context>{&context};
  }
}

Queue::~Queue() = default;

std::uintptr_t Queue::key() const noexcept { return address(this); }

void Queue::note_pool() noexcept {
  const std::lock_guard hold{pools_lock_};
  ++pools_;
}

void Queue::forget_pool() noexcept {
  const std::lock_guard hold{pools_lock_};
  --pools_;
}

bool Queue::known_to_pools_alone() noexcept {
  const std::lock_guard hold{pools_lock_};
  return references() <= pools_;
}

bool Queue::retain_if_known() noexcept {
  const std::lock_guard hold{pools_lock_};
  return references() > pools_ && try_retain();
}

Result<void*> Queue::lend() noexcept {
  void* handle = native();
  if (handle != nullptr) {
    mark_lent();
    if (waits_elsewhere_.load(std::memory_order_acquire)) [[unlikely]] {
      if (auto refused = follow_elsewhere()) {
        return refused;
      }
    }
  }
  return handle;
}

Error Queue::refuse() const {
  if (os::drivers_are_gone()) {
    return fail(ISTHMUS_ERROR_FORKED,
                "a queue cannot be used in a forked child (start it with spawn), nor after main "
                "has returned");
  }
  if (closed()) {
    return fail(ISTHMUS_ERROR_CLOSED, "this queue of {} was closed", device_.properties().filter);
  }
  return {};
}

// Returns the events that are still pending, as events that this driver can wait for. If the driver
// cannot wait for the host, the calling thread waits here instead. The failure of an order_only
// event is dropped.
Result<std::vector<Ref<Event>>> Queue::translate(WaitList after) {
  std::vector<Ref<Event>> pending;
  for (const auto& given : after) {
    const auto* const only = OrderOnlyEvent::waited_by(*given);
    const auto& before = only != nullptr ? *only : given;
    if (!before->settled() && !knows(*before) && !device_.can(ISTHMUS_CAN_WAIT_FOR_HOST)) {
      static_cast<void>(before->wait(std::nullopt));
    }
    // Not queried: the driver orders what is still pending, and on a simulated device a query
    // counts as a poll, which may end the operation.
    const auto state = before->settled() ? before->poll() : ISTHMUS_PENDING;
    if (state == ISTHMUS_OK || (only != nullptr && state != ISTHMUS_PENDING)) {
      continue;
    }
    if (state != ISTHMUS_PENDING) {
      return failed_dependency(before->outcome());
    }
    if (knows(*before)) {
      auto stands_for = only != nullptr ? end_of_known(before, given) : Result<Ref<Event>>{before};
      ISTHMUS_TRY(stands_for);
      pending.push_back(*std::move(stands_for));
      continue;
    }
    auto imported = import(*given);
    ISTHMUS_TRY(imported);
    pending.push_back(*std::move(imported));
  }
  return pending;
}

std::uint64_t Queue::begin_submission() {
  return promise_room(tails_, tails_lock_, promised_, next_number_);
}

void Queue::give_up_submission() noexcept {
  const std::lock_guard hold{tails_lock_};
  --promised_;
}

void Queue::reserve_place() { static_cast<void>(begin_submission()); }

Error Queue::take_place(const Ref<Event>& elsewhere) noexcept {
  {
    const std::lock_guard hold{tails_lock_};
    --promised_;
    tails_.push_back({next_number_++, elsewhere, true});
    waits_elsewhere_.store(true, std::memory_order_release);
  }
  return follow_elsewhere();
}

Ref<Event> Queue::pending_elsewhere() noexcept {
  const std::lock_guard hold{tails_lock_};
  const auto found = std::ranges::find_if(
      tails_, [](const Tail& each) { return each.is_elsewhere && !each.last->settled(); });
  return found != tails_.end() ? found->last : Ref<Event>{};
}

Error Queue::fence_without_throwing() noexcept {
  try {
    auto put = fence({});
    return put ? Error{} : put.take_error();
  } catch (const std::bad_alloc&) {
    return Error::no_memory();
  }
}

Error Queue::cannot_follow(const Error& refused) const noexcept {
  return fail(
      refused.code(),
      "the driver refused for {} ms to order a queue of {}, whose handle was exported, after an "
      "operation on another queue (wait for that operation before the handle is used): {}",
      k_follows_for.count(), device_.properties().filter, refused.message());
}

// Orders later work of other code on the driver's queue after the events elsewhere. Retries rather
// than waits for these events, since they may depend on one that the calling thread completes. A
// driver may refuse permanently, and then the caller gets the error. On a lost device nothing runs,
// so nothing can run too early.
Error Queue::follow_elsewhere() noexcept {
  const auto until = os::Clock::now() + k_follows_for;
  for (;;) {
    auto refused = fence_without_throwing();
    if (!refused || refused.code() == ISTHMUS_ERROR_DEVICE_LOST || !has_external_work() ||
        closed() || os::drivers_are_gone()) {
      return {};
    }
    const auto left = pending_elsewhere();
    if (!left) {
      return {};
    }
    if (left->pending()) {
      if (os::Clock::now() >= until) {
        return cannot_follow(refused);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  }
}

std::uint64_t Queue::add_from_elsewhere(std::vector<Ref<Event>>& after) {
  if (!waits_elsewhere_.load(std::memory_order_acquire)) [[likely]] {
    return 0;
  }
  std::vector<Ref<Event>> found;
  const auto below = [&] {
    const std::lock_guard hold{tails_lock_};
    for (const auto& each : tails_) {
      if (each.is_elsewhere) {
        found.push_back(each.last);
      }
    }
    return next_number_;
  }();
  for (const auto& each : found) {
    after.push_back(order_only(each));
  }
  return below;
}

// Everything remembered before this submission began precedes it in the queue's order: its end
// implies theirs. Concurrent submissions of other threads stay, and so do events elsewhere that
// this submission did not wait for. References are dropped outside the lock, one at a time: there
// is a single tail unless threads submit concurrently.
void Queue::remember(Ref<Event> submitted, std::uint64_t began_at,
                     std::uint64_t elsewhere_below) noexcept {
  const auto lies_before = [=](const Tail& earlier) {
    return earlier.number < (earlier.is_elsewhere ? elsewhere_below : began_at);
  };
  {
    const std::lock_guard hold{tails_lock_};
    if (tails_.size() == 1 && elsewhere_below == 0 && lies_before(tails_.front())) [[likely]] {
      tails_.front().number = next_number_++;
      std::swap(tails_.front().last, submitted);
      --promised_;
      return;
    }
  }
  for (bool added = false; !added;) {
    Ref<Event> dropped;
    const std::lock_guard hold{tails_lock_};
    const auto first = std::find_if(tails_.begin(), tails_.end(), lies_before);
    added = first == tails_.end() || std::none_of(first + 1, tails_.end(), lies_before);
    if (first == tails_.end()) {
      tails_.push_back({next_number_++, std::move(submitted)});
    } else {
      dropped = std::move(first->last);
      if (added) {
        *first = {next_number_++, std::move(submitted)};
      } else {
        tails_.erase(first);
      }
    }
    promised_ -= added ? 1 : 0;
    if (added && elsewhere_below != 0) [[unlikely]] {
      waits_elsewhere_.store(std::ranges::any_of(tails_, &Tail::is_elsewhere),
                             std::memory_order_release);
    }
  }
}

template <class Lock, class Submit>
Result<Ref<Event>> Queue::submit(WaitList after, Submit&& call) {
  if (auto refused = refuse()) {
    return refused;
  }
  std::vector<Ref<Event>> elsewhere;
  const auto elsewhere_below = add_from_elsewhere(elsewhere);
  if (elsewhere_below != 0) {
    elsewhere.insert(elsewhere.end(), after.begin(), after.end());
    after = elsewhere;
  }
  std::vector<Ref<Event>> pending;
  if (!after.empty()) {
    auto translated = translate(after);
    if (!translated) {
      return translated.take_error();
    }
    pending = *std::move(translated);
  }
  const Lock together{handing_over_};
  const auto began_at = begin_submission();
  Undo given_up{[&] { give_up_submission(); }};
  Result<Ref<Event>> submitted = call(WaitList{pending});
  if (submitted) {
    given_up.dismiss();
    remember(*submitted, began_at, elsewhere_below);
  }
  return submitted;
}

Result<Ref<Event>> Queue::copy(void* destination, const void* source, std::size_t nbytes,
                               WaitList after) {
  return submit(after, [&](WaitList known) { return do_copy(destination, source, nbytes, known); });
}

Result<Ref<Event>> Queue::copy_2d(const Copy2dShape& shape, WaitList after) {
  return submit(after, [&](WaitList known) { return do_copy_2d(shape, known); });
}

Result<Ref<Event>> Queue::copy_ranges(const RangedCopy& copy, WaitList after) {
  return submit(after, [&](WaitList known) { return do_copy_ranges(copy, known); });
}

Result<Ref<Event>> Queue::copy_strided(const StridedCopy& copy, WaitList after) {
  return submit(after, [&](WaitList known) { return do_copy_strided(copy, known); });
}

Result<Ref<Event>> Queue::do_copy_strided(const StridedCopy& copy, WaitList after) {
  return do_copy_ranges({copy.destination, copy.source, list_runs(copy)}, after);
}

Result<Ref<Event>> Queue::fill(void* destination, const FillPattern& pattern, std::size_t nbytes,
                               WaitList after) {
  return submit(after,
                [&](WaitList known) { return do_fill(destination, pattern, nbytes, known); });
}

Result<Ref<Event>> Queue::prefetch(const void* pointer, std::size_t nbytes, bool to_host,
                                   WaitList after) {
  return submit(after,
                [&](WaitList known) { return do_prefetch(pointer, nbytes, to_host, known); });
}

Result<Ref<Event>> Queue::advise(const void* pointer, std::size_t nbytes, std::uint32_t advice,
                                 WaitList after) {
  return submit(after, [&](WaitList known) { return do_advise(pointer, nbytes, advice, known); });
}

Result<Ref<Event>> Queue::fence(WaitList after) {
  return submit(after, [&](WaitList known) { return do_fence(known); });
}

Result<Ref<Event>> Queue::mark() {
  return submit({}, [&](WaitList) { return do_mark(); });
}

Result<void> Queue::stand_behind(WaitList before) {
  if (before.empty()) {
    return {};
  }
  auto reached = fence(order_only(before));
  ISTHMUS_TRY(reached);
  const bool is_behind =
      (*reached)->is_put() && ((*reached)->succeeded() || !(*reached)->settled());
  if (!is_behind) {  // held back, or refused on submission to the driver
    return let_end_interruptibly(before);
  }
  return {};
}

// If the function is refused, at once or for lack of a thread, it is destroyed after the lock was
// released.
Result<Ref<Event>> Queue::run(std::unique_ptr<HostFunction> function, WaitList after) {
  FunctionStart start;
  auto submitted = submit<std::unique_lock<std::shared_mutex>>(
      after, [&](WaitList known) { return do_run(function, known, start); });
  if (start.turn != nullptr) {
    start.reached->on_complete(*start.turn);
  }
  return submitted;
}

Result<Ref<Event>> Queue::do_prefetch(const void*, std::size_t, bool, WaitList) {
  return fail(ISTHMUS_ERROR_UNSUPPORTED, "{} cannot prefetch", device_.properties().filter);
}

Result<Ref<Event>> Queue::do_advise(const void*, std::size_t, std::uint32_t, WaitList) {
  return fail(ISTHMUS_ERROR_UNSUPPORTED, "{} does not support memory advice",
              device_.properties().filter);
}

Result<Ref<Event>> Queue::import(Event&) {
  return fail(ISTHMUS_ERROR_INTERNAL, "{} reports that it can wait for the host, but cannot",
              device_.properties().filter);
}

}  // namespace isthmus
