// SPDX-License-Identifier: Apache-2.0
#include "backend/queue.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>
#include <utility>

#include "backend/order_only.hpp"
#include "backend/workarounds/query_on_demand.hpp"
#include "core/expects.hpp"
#include "core/sizes.hpp"
#include "core/undo.hpp"
#include "os/process.hpp"

namespace isthmus {
namespace {

// Much longer than a temporary shortage of memory lasts.
constexpr std::chrono::milliseconds k_max_order_retry_time{1000};

std::uint64_t next_serial() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

Queue::Queue(Context& context, Device& device, QueueTraits traits)
    : RefCounted{traits.is_default ? &device : nullptr},
      context_{context},
      device_{device},
      serial_{next_serial()},
      is_exported_{traits.is_adopted},
      traits_{traits} {
  if (!traits.is_default) {
    context_ref_ = Ref<Context>{&context};
  }
  if (traits.is_queried_on_demand) {
    note_queue_queried_on_demand();
  }
}

Queue::~Queue() = default;

Result<Ref<Queue>> Queue::create(Context& context, Device& device) {
  if (os::is_forked_child()) {
    return fail(ISTHMUS_ERROR_FORKED,
                "a forked child cannot create a queue: start the child with spawn");
  }
  if (!context.has(device)) {
    return fail(ISTHMUS_ERROR_WRONG_CONTEXT, "{} is not a device of this context",
                device.properties().filter);
  }
  return context.make_queue(device, false);
}

std::uintptr_t Queue::key() const noexcept { return address(this); }

Result<void*> Queue::export_handle() noexcept {
  void* handle = native();
  if (handle != nullptr) {
    is_exported_.store(true, std::memory_order_release);
    if (tail_.has_off_queue()) [[unlikely]] {
      if (auto error = order_after_off_queue()) {
        return error;
      }
    }
  }
  return handle;
}

Error Queue::check_usable() const {
  if (os::drivers_unavailable()) {
    return fail(ISTHMUS_ERROR_FORKED,
                "a queue cannot be used in a forked child (start the child with spawn), nor after "
                "main has returned");
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
  for (const auto& listed : after) {
    const auto* const wrapped = OrderOnlyEvent::wrapped_by(*listed);
    const auto& dependency = wrapped != nullptr ? *wrapped : listed;
    if (!dependency->settled() && !can_wait_for(*dependency) &&
        !device_.can(ISTHMUS_CAN_WAIT_FOR_HOST)) {
      auto waited = dependency->wait(std::nullopt);
      if (!dependency->settled()) {
        return waited.take_error();
      }
    }
    // The driver is not queried, since it orders pending events itself. On a simulated device a
    // query would count as a poll, which may complete the operation.
    const auto status = dependency->settled() ? dependency->poll() : ISTHMUS_PENDING;
    if (status == ISTHMUS_OK || (wrapped != nullptr && status != ISTHMUS_PENDING)) {
      continue;
    }
    if (status != ISTHMUS_PENDING) {
      return failed_dependency(dependency->outcome());
    }
    if (can_wait_for(*dependency)) {
      auto order_only_dependency = wrapped != nullptr ? order_only_event(dependency, listed)
                                                      : Result<Ref<Event>>{dependency};
      ISTHMUS_TRY(order_only_dependency);
      pending.push_back(*std::move(order_only_dependency));
      continue;
    }
    auto imported = import(*listed);
    ISTHMUS_TRY(imported);
    pending.push_back(*std::move(imported));
  }
  return pending;
}

void Queue::reserve_off_queue() { static_cast<void>(tail_.reserve()); }

Error Queue::insert_off_queue(const Ref<Event>& event) noexcept {
  tail_.insert_off_queue(event);
  return order_after_off_queue();
}

Error Queue::fence_without_throwing() noexcept {
  try {
    auto fenced = fence({});
    return fenced ? Error{} : fenced.take_error();
  } catch (const std::bad_alloc&) {
    return Error::no_memory();
  }
}

Error Queue::ordering_error(const Error& cause) const noexcept {
  return fail(
      cause.code(),
      "the driver refused for {} ms to order a queue of {}, whose handle was exported, after an "
      "operation on another queue (wait for that operation before the handle is used): {}",
      k_max_order_retry_time.count(), device_.properties().filter, cause.message());
}

// Orders later external work on the driver's queue after the off-queue events. Retries rather than
// waits for these events, since they may depend on an event that the calling thread completes
// later. If the driver refuses permanently, returns its error. On a lost device no work runs, so
// none can run too early.
Error Queue::order_after_off_queue() noexcept {
  const auto until = os::Clock::now() + k_max_order_retry_time;
  for (;;) {
    auto error = fence_without_throwing();
    if (!error || error.code() == ISTHMUS_ERROR_DEVICE_LOST || !has_external_work() || closed() ||
        os::drivers_unavailable()) {
      return {};
    }
    const auto event = tail_.unfinished_off_queue();
    if (!event) {
      return {};
    }
    if (event->pending()) {
      if (os::Clock::now() >= until) {
        return ordering_error(error);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  }
}

std::uint64_t Queue::add_off_queue_events(std::vector<Ref<Event>>& after) {
  if (!tail_.has_off_queue()) [[likely]] {
    return 0;
  }
  std::vector<Ref<Event>> off_queue_events;
  const auto limit = tail_.add_off_queue(off_queue_events);
  for (const auto& each : off_queue_events) {
    after.push_back(order_only(each));
  }
  return limit;
}

// An event that has completed may be shared, and no wait for it blocks. Without memory for the
// record, waits for the operation are not checked: it was submitted, and must not fail.
void Queue::set_position(Event& submitted, std::uint64_t number, WaitList after) const noexcept
    try {
  if (submitted.settled()) {
    return;
  }
  const QueuePosition position{serial_, number};
  submitted.set_position(position);
  if (!after.empty() && has_pending_functions()) {
    record_dependencies(position, positions_of(after));
  }
} catch (const std::bad_alloc&) {
}

template <class Lock, class Submit>
Result<Ref<Event>> Queue::submit(WaitList after, Submit&& call, HostFunction* function) {
  if (auto error = check_usable()) {
    return error;
  }
  std::vector<Ref<Event>> combined;
  const auto off_queue_limit = add_off_queue_events(combined);
  if (off_queue_limit != 0) {
    combined.insert(combined.end(), after.begin(), after.end());
    after = combined;
  }
  std::vector<Ref<Event>> pending;
  if (!after.empty()) {
    auto translated = translate(after);
    if (!translated) {
      return translated.take_error();
    }
    pending = *std::move(translated);
  }
  const Lock hold{submission_lock_};
  const auto begin = tail_.reserve();
  Undo cancelled{[&] { tail_.cancel(); }};
  if (function != nullptr) {
    function->begin_pending({serial_, begin});
  }
  Result<Ref<Event>> submitted = call(WaitList{pending});
  if (submitted) {
    cancelled.dismiss();
    set_position(**submitted, begin, after);
    tail_.record(*submitted, begin, off_queue_limit);
  }
  return submitted;
}

Result<Ref<Event>> Queue::copy(void* destination, const void* source, std::size_t nbytes,
                               WaitList after) {
  ISTHMUS_EXPECTS(nbytes != 0);
  return submit(after, [&](WaitList dependencies) {
    return do_copy(destination, source, nbytes, dependencies);
  });
}

Result<Ref<Event>> Queue::copy_2d(const Copy2dShape& shape, WaitList after) {
  return submit(after, [&](WaitList dependencies) { return do_copy_2d(shape, dependencies); });
}

Result<Ref<Event>> Queue::copy_ranges(const RangedCopy& copy, WaitList after) {
  ISTHMUS_EXPECTS(!copy.ranges.empty());
  ISTHMUS_EXPECTS_SLOW(std::ranges::all_of(copy.ranges, &CopyRange::nbytes));
  return submit(after, [&](WaitList dependencies) { return do_copy_ranges(copy, dependencies); });
}

Result<Ref<Event>> Queue::copy_strided(const StridedCopy& copy, WaitList after) {
  ISTHMUS_EXPECTS(copy.bytes() != 0);
  return submit(after, [&](WaitList dependencies) { return do_copy_strided(copy, dependencies); });
}

Result<Ref<Event>> Queue::do_copy_strided(const StridedCopy& copy, WaitList after) {
  return do_copy_ranges({copy.destination, copy.source, list_runs(copy)}, after);
}

Result<Ref<Event>> Queue::fill(void* destination, const FillPattern& pattern, std::size_t nbytes,
                               WaitList after) {
  ISTHMUS_EXPECTS(nbytes % pattern.nbytes == 0, nbytes, pattern.nbytes);
  return submit(after, [&](WaitList dependencies) {
    return do_fill(destination, pattern, nbytes, dependencies);
  });
}

Result<Ref<Event>> Queue::prefetch(const void* pointer, std::size_t nbytes, bool to_host,
                                   WaitList after) {
  return submit(after, [&](WaitList dependencies) {
    return do_prefetch(pointer, nbytes, to_host, dependencies);
  });
}

Result<Ref<Event>> Queue::advise(const void* pointer, std::size_t nbytes, std::uint32_t advice,
                                 WaitList after) {
  return submit(after, [&](WaitList dependencies) {
    return do_advise(pointer, nbytes, advice, dependencies);
  });
}

Result<Ref<Event>> Queue::fence(WaitList after) {
  return submit(after, [&](WaitList dependencies) { return do_fence(dependencies); });
}

Result<Ref<Event>> Queue::mark() {
  return submit({}, [&](WaitList) { return do_mark(); });
}

Result<void> Queue::order_after(WaitList dependencies) {
  if (dependencies.empty()) {
    return {};
  }
  auto fence_event = fence(order_only(dependencies));
  ISTHMUS_TRY(fence_event);
  const bool is_ordered =
      (*fence_event)->is_enqueued() && ((*fence_event)->succeeded() || !(*fence_event)->settled());
  if (!is_ordered) {  // deferred, or rejected on submission to the driver
    return wait_until_ended_interruptibly(dependencies);
  }
  return {};
}

// If the function is rejected, or no thread can be started, it is destroyed after the lock was
// released.
Result<Ref<Event>> Queue::run(std::unique_ptr<HostFunction> function, WaitList after) {
  FunctionStart start;
  auto submitted = submit<LockGuard<SharedMutex>>(
      after, [&](WaitList dependencies) { return do_run(function, dependencies, start); },
      function.get());
  if (start.continuation != nullptr) {
    start.start_event->on_complete(*start.continuation);
  }
  return submitted;
}

Result<Ref<Event>> Queue::do_run(std::unique_ptr<HostFunction>& function, WaitList after,
                                 FunctionStart& start) {
  if (!device_.can(ISTHMUS_CAN_WAIT_FOR_HOST)) {
    return fail(ISTHMUS_ERROR_UNSUPPORTED,
                "{} cannot wait for host functions: it lacks the capability \"wait_for_host\"",
                device_.properties().filter);
  }
  auto end_event = make_ref<LibraryEvent>();
  auto gate = make_ref<LibraryEvent>();
  auto continuation =
      std::make_unique<FunctionContinuation>(std::move(function), context_, end_event, gate);
  Undo restore_function{[&] { function = continuation->release_function(); }};
  auto start_event = do_fence(after);
  if (!start_event) {
    return start_event.take_error();
  }
  auto gate_event = can_wait_for(*gate) ? Result<Ref<Event>>{Ref<Event>{gate}} : import(*gate);
  if (gate_event) {
    gate_event = do_fence(std::span{&*gate_event, 1});
  }
  if (!gate_event) {
    gate->finish({});
    return gate_event.take_error();
  }
  restore_function.dismiss();
  start = {*std::move(start_event), continuation.release()};
  return Ref<Event>{end_event};
}

Result<Ref<Event>> Queue::do_prefetch(const void*, std::size_t, bool, WaitList) {
  return fail(ISTHMUS_ERROR_UNSUPPORTED,
              "{} cannot prefetch memory: it lacks the capability \"prefetch\"",
              device_.properties().filter);
}

Result<Ref<Event>> Queue::do_advise(const void*, std::size_t, std::uint32_t, WaitList) {
  return fail(ISTHMUS_ERROR_UNSUPPORTED,
              "{} does not support advice on memory: it lacks the capability \"advise\"",
              device_.properties().filter);
}

Result<Ref<Event>> Queue::import(Event&) {
  return fail(ISTHMUS_ERROR_INTERNAL, "{} reports that it can wait for the host, but cannot",
              device_.properties().filter);
}

Result<void> Queue::unfinished(std::vector<Ref<Event>>& out) {
  if (is_exported()) {
    const auto number = tail_.next_number();
    auto fence_event = do_fence({});
    ISTHMUS_TRY(fence_event);
    if (number != 0) {  // the fence is not recorded: the next submission gets `number`
      set_position(**fence_event, number - 1, {});
    }
    out.push_back(*std::move(fence_event));
    if (!tail_.has_off_queue()) [[likely]] {
      return {};
    }
  }
  add_own_unfinished(out);
  return {};
}

bool Queue::has_single_end(Ref<Event>& last) noexcept {
  return !is_exported() && tail_.has_single_end(last);
}

bool Queue::idle() {
  std::vector<Ref<Event>> last;
  if (is_exported() || !unfinished(last)) {
    return false;
  }
  // Queries the events outside the lock, since completion runs continuations, which may use this
  // queue.
  return std::none_of(last.begin(), last.end(),
                      [](const Ref<Event>& each) { return each->pending(); });
}

bool Queue::is_known_idle() noexcept { return !is_exported() && tail_.is_known_idle(); }

Result<void> Queue::wait(const os::Deadline& until) {
  if (os::is_forked_child()) {
    return check_usable();
  }
  std::vector<Ref<Event>> unfinished_events;
  ISTHMUS_TRY(unfinished(unfinished_events));
  return wait_until_ended(unfinished_events, until);
}

Result<void> Queue::begin_wait(FunctionWait& wait, WaitList dependencies) const {
  if (!is_in_function()) [[likely]] {
    return {};
  }
  auto positions = positions_of(dependencies);
  positions.push_back({serial_, std::numeric_limits<std::uint64_t>::max()});
  return wait.begin(positions);
}

Result<Ref<Event>> Queue::pending() {
  if (os::is_forked_child()) {
    return check_usable();
  }
  std::vector<Ref<Event>> unfinished_events;
  ISTHMUS_TRY(unfinished(unfinished_events));
  return end_of_all(unfinished_events);
}

}  // namespace isthmus
