// SPDX-License-Identifier: Apache-2.0
// An event is the completion of an operation, or of host work (host_event).
//
//   isthmus::event copied = isthmus::copy_async(buffer, bytes);
//   copied.wait();                              // throws the error of the operation
//   if (!copied.wait_for(10ms)) ...             // not yet completed
//   co_await copied.on(scheduler);              // resumes on the thread that `scheduler` chooses
//   isthmus::wait_all(events);                  // a vector of events
//
// Dropping an event does not cancel the operation, which continues and keeps the objects that it
// uses alive.
//
// Cost: an event is a pointer; waiting for a completed event is a load. Thread-safe.
#pragma once

#include <isthmus/context.hpp>

#include <chrono>
#include <initializer_list>
#include <limits>
#include <span>
#include <vector>

namespace isthmus {
inline namespace v1 {

// Times of an operation, on the device's clock.
struct event_times {
  std::chrono::nanoseconds submitted{};
  std::chrono::nanoseconds started{};
  std::chrono::nanoseconds ended{};
};

template <class Scheduler>
class event_awaiter;

template <>
inline constexpr const char* detail::class_name<isthmus_event_t> = "event";

// A counted reference to an event.
class [[nodiscard]] event
    : public detail::handle<event, isthmus_event_t, isthmus_event_retain, isthmus_event_release> {
 public:
  event() noexcept = default;
  // Adopts a driver's event (SYCL: sycl::event, as dpctl's reference), which the driver's reference
  // count keeps alive. Throws unsupported for other drivers.
  [[nodiscard]] static event adopt(const isthmus::context& context, void* native) {
    return detail::make<event>(isthmus_event_adopt, context.get(), native, isthmus_owner_t{});
  }

  // Blocks until the operation has ended. Throws the error of the operation. In a function on a
  // queue it throws `deadlock` if the operation starts only after that function has returned.
  void wait() const { detail::check(isthmus_event_wait(require(), -1)); }
  // Blocks for at most `time`. Returns false if the operation has not ended by then; otherwise as
  // wait().
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> time) const {
    isthmus_status_t code = isthmus_event_wait(require(), nanoseconds(time));
    if (code == ISTHMUS_ERROR_TIMEOUT) {
      if (!done()) return false;
      code = isthmus_event_wait(require(), -1);  // it ended meanwhile, or its own error is TIMEOUT
    }
    detail::check(code);
    return true;
  }
  // True once the operation has ended, also if it failed. Never blocks.
  [[nodiscard]] bool done() const noexcept { return status() != v1::status::pending; }
  // status::pending, status::ok, or the error of the operation. Never blocks.
  [[nodiscard]] v1::status status() const noexcept {
    return static_cast<v1::status>(isthmus_event_status(get()));
  }

  // Calls `function()` once: at once if the event is complete, else on completion, on a thread of
  // the library or in the call that completes a host event. `function` must not throw. It may use
  // the library, and wait. If no thread can be started, the thread that completes the event calls
  // it; it may then only release buffers and events.
  template <class Function>
  void then(Function&& function) const {
    using stored = std::decay_t<Function>;
    static_assert(std::is_nothrow_invocable_v<stored&>, "mark the function noexcept");
    isthmus_event_t* const raw = require();  // before the function is copied
    detail::check(
        isthmus_event_then(raw, {new stored(std::forward<Function>(function)), [](void* object) {
                                   auto* callback = static_cast<stored*>(object);
                                   (*callback)();
                                   delete callback;
                                 }}));
  }
  // For event loops: on completion, or at once if the event is complete, writes the number 1, as 8
  // bytes, to a duplicate of the file descriptor, for example an eventfd. Never blocks; if a pipe
  // is full, nothing is written.
  void notify(int descriptor) const { detail::check(isthmus_event_notify(require(), descriptor)); }
  // For co_await. On completion `scheduler(handle)` is called as a function of then() is. It calls
  // `handle()`, or makes another thread call it. The co_await expression throws as wait().
  template <class Scheduler>
  [[nodiscard]] event_awaiter<std::decay_t<Scheduler>> on(Scheduler&& scheduler) const;

  // The times of a completed operation. Throws unsupported where the driver does not record them,
  // and an error with status::pending before completion.
  [[nodiscard]] event_times times() const {
    isthmus_event_times_info_t info{};
    info.struct_size = sizeof info;
    detail::check(isthmus_event_times_info(require(), &info));
    const auto time = [](std::uint64_t ns) {
      return std::chrono::nanoseconds(static_cast<std::chrono::nanoseconds::rep>(ns));
    };
    return {time(info.submitted_ns), time(info.started_ns), time(info.ended_ns)};
  }
  // The time from the end of `earlier` to the end of this event; waits for both. The events are
  // marks of queues of one device, or other events that record their times. Throws unsupported for
  // events without times, invalid_argument for events of two devices.
  [[nodiscard]] std::chrono::nanoseconds elapsed_since(const event& earlier) const {
    earlier.wait();
    wait();
    std::int64_t elapsed = 0;
    detail::check(isthmus_event_elapsed(require(), earlier.require(), &elapsed));
    return std::chrono::nanoseconds(elapsed);
  }
  // The driver's event (OpenCL: cl_event; SYCL: sycl::event; CUDA: CUevent), or NULL where there is
  // none. Valid while this event lives.
  [[nodiscard]] void* native() const {
    return detail::read<isthmus_event_info_t>(isthmus_event_info, require()).native;
  }

  friend bool operator==(const event& a, const event& b) noexcept { return a.get() == b.get(); }

 protected:
  explicit event(isthmus_event_t* raw) noexcept : handle(raw) {}

 private:
  // Saturates, and never returns a negative number, which would wait indefinitely.
  template <class Rep, class Period>
  static std::int64_t nanoseconds(std::chrono::duration<Rep, Period> time) {
    using wide = std::chrono::duration<long double, std::nano>;
    constexpr auto max = std::numeric_limits<std::int64_t>::max();
    const long double count = std::chrono::duration_cast<wide>(time).count();
    if (!(count > 0)) return 0;
    if (count >= static_cast<long double>(max)) return max;
    return static_cast<std::int64_t>(count);
  }
};

// An event that the program completes, once. If the last reference is dropped before that, the
// event fails as abandoned, so that no queue waits for it indefinitely.
class [[nodiscard]] host_event : public event {
 public:
  // A new event that is pending.
  host_event() : event(create()) {}

  // Completes the event with success. Throws invalid_argument if it is complete.
  void complete() const { detail::check(isthmus_event_complete(require(), ISTHMUS_OK, nullptr)); }
  // Completes the event with a failure. Operations that wait for it fail with dependency_failed;
  // waiting for the event itself throws `code` with `message`. `code` is an error other than
  // status::timeout. Throws invalid_argument if the event is complete.
  void fail(const std::string& message, v1::status code = v1::status::callback) const {
    const auto raw = static_cast<isthmus_status_t>(code);
    detail::check(isthmus_event_complete(require(), raw, message.c_str()));
  }

 private:
  static isthmus_event_t* create() {
    isthmus_event_t* raw = nullptr;
    detail::check(isthmus_event_create(&raw));
    return raw;
  }
};

// The awaitable that event::on() returns. Used through co_await only.
template <class Scheduler>
class event_awaiter {
 public:
  event_awaiter(event awaited, Scheduler scheduler)
      : event_(std::move(awaited)), scheduler_(std::move(scheduler)) {}

  [[nodiscard]] bool await_ready() const noexcept { return event_.done(); }
  template <class CoroutineHandle>
  void await_suspend(CoroutineHandle coroutine) const {
    // The coroutine may resume, and destroy this awaiter, as soon as `then` has registered the
    // function. Hence the function owns all that it uses, and `event_copy` holds the event.
    event event_copy = event_;
    event_copy.then([schedule = scheduler_, coroutine]() mutable noexcept { schedule(coroutine); });
  }
  void await_resume() const { event_.wait(); }

 private:
  event event_;
  Scheduler scheduler_;
};

template <class Scheduler>
event_awaiter<std::decay_t<Scheduler>> event::on(Scheduler&& scheduler) const {
  return {*this, std::forward<Scheduler>(scheduler)};
}

// Events in one piece of memory: a vector, array or span of event or host_event.
template <class X>
concept event_list =
    !std::derived_from<X, event> && std::ranges::contiguous_range<const X> &&
    std::derived_from<std::remove_cv_t<std::ranges::range_value_t<const X>>, event>;

// The events that an operation waits for, of any context or platform. Pass one event, {a, b}, or a
// vector, array or span of events. Borrows the events, which must outlive this object: use it as a
// function argument only.
class dependencies {
 public:
  dependencies() noexcept = default;
  dependencies(const event& one) : raw_{one.require()} {}
  dependencies(std::initializer_list<event> events) { add(events.begin(), events.end()); }
  template <event_list Events>
  dependencies(const Events& events) {
    add(std::data(events), std::data(events) + std::size(events));
  }

  [[nodiscard]] isthmus_event_t* const* data() const noexcept { return raw_.data(); }
  [[nodiscard]] std::size_t size() const noexcept { return raw_.size(); }

 private:
  template <class Event>
  void add(const Event* first, const Event* last) {
    raw_.reserve(static_cast<std::size_t>(last - first));
    for (; first != last; ++first) raw_.push_back(first->require());
  }

  std::vector<isthmus_event_t*> raw_;
};

// Blocks until all operations have ended, including those after one that failed. Then throws the
// error of the first event, in the order of the list, whose operation failed.
inline void wait_all(const dependencies& events) {
  isthmus_event_t* failed = nullptr;
  for (std::size_t i = 0; i < events.size(); ++i) {
    isthmus_event_t* const event = events.data()[i];
    if (isthmus_event_wait(event, -1) != ISTHMUS_OK && failed == nullptr) failed = event;
  }
  // It has ended, so that this only repeats its error, which a later wait may have replaced.
  if (failed != nullptr) detail::check(isthmus_event_wait(failed, -1));
}

}  // namespace v1
}  // namespace isthmus
