// An event: the end of an operation, or (host_event) something that the host says has happened.
//
//   isthmus::event copied = isthmus::copy_async(buffer, bytes);
//   copied.wait();                              // throws what went wrong
//   if (!copied.wait_for(10ms)) ...             // not yet
//   co_await copied.on(scheduler);              // resumed where `scheduler` says
//
// Cost: a pointer; a wait on what has ended is a load. Dropping an event drops no work: the
// operation runs on and owns what it needs. Threads: any.
#pragma once

#include <isthmus/context.hpp>

#include <chrono>
#include <initializer_list>
#include <limits>
#include <span>
#include <vector>

namespace isthmus {
inline namespace v1 {

// On the device's clock.
struct event_times {
  std::chrono::nanoseconds submitted{};
  std::chrono::nanoseconds started{};
  std::chrono::nanoseconds ended{};
};

template <class Scheduler>
class event_awaiter;

class [[nodiscard]] event
    : public detail::handle<event, isthmus_event_t, isthmus_event_retain, isthmus_event_release> {
 public:
  event() noexcept = default;
  // A driver's own event (SYCL: sycl::event, as dpctl's reference), by its own reference count.
  [[nodiscard]] static event adopt(const context& home, void* native) {
    return detail::make<event>(isthmus_event_adopt, home.get(), native, isthmus_owner_t{});
  }

  // Blocks till the operation has ended; throws the error that it ended with.
  void wait() const { detail::check(isthmus_event_wait(get(), -1)); }
  // False when the time ran out first.
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> time) const {
    isthmus_status_t code = isthmus_event_wait(get(), nanoseconds(time));
    if (code == ISTHMUS_ERROR_TIMEOUT) {
      if (!done()) return false;
      code = isthmus_event_wait(get(), -1);  // it ended after all, or with this very error
    }
    detail::check(code);
    return true;
  }
  // Never blocks. A failed operation is done as well.
  [[nodiscard]] bool done() const noexcept { return status() != v1::status::pending; }
  [[nodiscard]] v1::status status() const noexcept {
    return static_cast<v1::status>(isthmus_event_status(get()));
  }

  // Calls `function()` once, on completion (at once if complete), on any thread. It must not throw
  // nor use this library: let it wake a thread that does.
  template <class Function>
  void then(Function&& function) const {
    using stored = std::decay_t<Function>;
    static_assert(std::is_nothrow_invocable_v<stored&>, "mark the function noexcept");
    detail::check(
        isthmus_event_then(get(), {new stored(std::forward<Function>(function)), [](void* object) {
                                     auto* held = static_cast<stored*>(object);
                                     (*held)();
                                     delete held;
                                   }}));
  }
  // Writes the 8-byte number 1 to (a copy of) an eventfd on completion: for event loops.
  void notify(int descriptor) const { detail::check(isthmus_event_notify(get(), descriptor)); }
  // For co_await: `scheduler(handle)` is called on any thread and must see to it that `handle()` is
  // called on another, as work of the library may not be started where it is called.
  template <class Scheduler>
  [[nodiscard]] event_awaiter<std::decay_t<Scheduler>> on(Scheduler&& scheduler) const;

  // Throws unsupported where the driver keeps no times.
  [[nodiscard]] event_times times() const {
    std::uint64_t submitted = 0;
    std::uint64_t started = 0;
    std::uint64_t ended = 0;
    detail::check(isthmus_event_times(get(), &submitted, &started, &ended));
    const auto time = [](std::uint64_t ns) {
      return std::chrono::nanoseconds(static_cast<std::chrono::nanoseconds::rep>(ns));
    };
    return {time(submitted), time(started), time(ended)};
  }
  // From the end of `earlier` to this one's, both of which it waits for: of two marks of queues of
  // one device. Throws unsupported for events without times, invalid_argument for two devices'.
  [[nodiscard]] std::chrono::nanoseconds elapsed_since(const event& earlier) const {
    earlier.wait();
    wait();
    std::int64_t elapsed = 0;
    detail::check(isthmus_event_elapsed(get(), earlier.get(), &elapsed));
    return std::chrono::nanoseconds(elapsed);
  }
  // OpenCL: cl_event; NULL where there is none.
  [[nodiscard]] void* native() const noexcept { return isthmus_event_native(get()); }

  friend bool operator==(const event& a, const event& b) noexcept { return a.get() == b.get(); }

 protected:
  explicit event(isthmus_event_t* raw) noexcept : handle(raw) {}

 private:
  // Saturates, and never gives a negative number, which would wait for ever.
  template <class Rep, class Period>
  static std::int64_t nanoseconds(std::chrono::duration<Rep, Period> time) {
    using wide = std::chrono::duration<long double, std::nano>;
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    const long double count = std::chrono::duration_cast<wide>(time).count();
    if (!(count > 0)) return 0;
    if (count >= static_cast<long double>(most)) return most;
    return static_cast<std::int64_t>(count);
  }
};

// An event that the host completes, once. When the last copy goes uncompleted it fails as
// abandoned, so that no queue waits for ever.
class [[nodiscard]] host_event : public event {
 public:
  host_event() : event(create()) {}

  void complete() const { detail::check(isthmus_event_complete(get(), ISTHMUS_OK, nullptr)); }
  // What waits for it fails: with `message` where the event itself is waited for.
  void fail(const std::string& message, v1::status code = v1::status::callback) const {
    const auto raw = static_cast<isthmus_status_t>(code);
    detail::check(isthmus_event_complete(get(), raw, message.c_str()));
  }

 private:
  static isthmus_event_t* create() {
    isthmus_event_t* raw = nullptr;
    detail::check(isthmus_event_create(&raw));
    return raw;
  }
};

template <class Scheduler>
class event_awaiter {
 public:
  event_awaiter(event awaited, Scheduler scheduler)
      : event_(std::move(awaited)), scheduler_(std::move(scheduler)) {}

  [[nodiscard]] bool await_ready() const noexcept { return event_.done(); }
  template <class CoroutineHandle>
  void await_suspend(CoroutineHandle coroutine) const {
    // Once `then` has been called this awaiter may be gone: everything used lies in the function.
    event keep = event_;
    keep.then([schedule = scheduler_, coroutine]() mutable noexcept { schedule(coroutine); });
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

// What an operation waits for, of any context or platform: written as one event or {a, b}. It
// borrows the events and is meant as an argument, which they outlive.
class dependencies {
 public:
  dependencies() noexcept = default;
  dependencies(const event& one) : raw_{one.get()} {}
  dependencies(std::initializer_list<event> events)
      : dependencies(std::span<const event>(events.begin(), events.size())) {}
  dependencies(std::span<const event> events) {
    raw_.reserve(events.size());
    for (const event& one : events) raw_.push_back(one.get());
  }

  [[nodiscard]] isthmus_event_t* const* data() const noexcept { return raw_.data(); }
  [[nodiscard]] std::size_t size() const noexcept { return raw_.size(); }

 private:
  std::vector<isthmus_event_t*> raw_;
};

static_assert(std::copyable<event> && std::equality_comparable<event>);
static_assert(std::copyable<host_event> && std::convertible_to<host_event, event>);
static_assert(std::is_nothrow_move_constructible_v<event>);
static_assert(sizeof(event) == sizeof(void*) && sizeof(host_event) == sizeof(void*));

}  // namespace v1
}  // namespace isthmus
