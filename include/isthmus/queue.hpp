// A queue: where operations are put; they run in the order they were put there.
//
//   auto queue = isthmus::queue::of(isthmus::device::best());   // the device's default queue
//   isthmus::queue second(device);                              // one more: runs beside it
//
// Cost: of() is a look-up, a new queue a driver call (a thread on the host, when first needed).
// Threads: any; operations put by several threads run in some order that each thread's own keeps.
#pragma once

#include <isthmus/context.hpp>
#include <isthmus/event.hpp>

namespace isthmus {
inline namespace v1 {

class buffer;

class queue
    : public detail::handle<queue, isthmus_queue_t, isthmus_queue_retain, isthmus_queue_release> {
 public:
  queue() noexcept = default;
  explicit queue(const v1::device& device) : handle(create(nullptr, device.get())) {}
  queue(const v1::context& context, const v1::device& device)
      : handle(create(context.get(), device.get())) {}

  // The default queue of a device, one in the process, on the device's default context.
  [[nodiscard]] static queue of(const v1::device& device) {
    return detail::make<queue>(isthmus_queue_default, device.get());
  }
  // A driver's own queue (OpenCL: cl_command_queue), kept alive by the driver's reference count. On
  // an out-of-order one each operation stands behind a barrier.
  [[nodiscard]] static queue adopt(const v1::device& device, void* native) {
    return detail::make<queue>(isthmus_queue_adopt, device.get(), native, isthmus_owner_t{});
  }
  // The same, kept alive by `owner`, any object, which dies when it is no longer needed.
  template <class Owner>
  [[nodiscard]] static queue adopt(const v1::device& device, void* native, Owner&& owner) {
    return detail::make<queue>(isthmus_queue_adopt, device.get(), native,
                               detail::make_owner(std::forward<Owner>(owner)));
  }

  [[nodiscard]] v1::device device() const noexcept {
    return v1::device::share(isthmus_queue_device(get()));
  }
  [[nodiscard]] v1::context context() const noexcept {
    return v1::context::share(isthmus_queue_context(get()));
  }
  // OpenCL: cl_command_queue. From here on, what is freed on this queue waits for a fence, as the
  // queue may have work that the library does not know.
  [[nodiscard]] void* native() const noexcept { return isthmus_queue_native(get()); }

  [[nodiscard]] bool idle() const noexcept { return isthmus_queue_idle(get()) != 0; }
  void wait() const { detail::check(isthmus_queue_wait(get(), -1)); }
  // An event that completes, with success, once all submitted so far has ended.
  [[nodiscard]] event pending() const { return detail::make<event>(isthmus_queue_pending, get()); }
  // An event that completes when all submitted so far, and all of `after`, has.
  event fence(const dependencies& after = {}) const {
    return detail::make<event>(isthmus_queue_fence, get(), after.data(), after.size());
  }
  // The same, and it knows when, for event::elapsed_since.
  [[nodiscard]] event mark() const { return detail::make<event>(isthmus_queue_mark, get()); }
  // Refuses further work; what is submitted still runs. Not for a device's default queue.
  void close() const { detail::check(isthmus_queue_close(get())); }

  // Runs `function(std::span<std::byte>...)`, one span a buffer, in this queue's order on a thread
  // of the library. What it throws ends the event with callback_failed and its text. Defined in
  // submit.hpp.
  template <class Function, std::same_as<buffer>... Buffers>
  event submit(Function&& function, const Buffers&... buffers) const;
  template <class Function, std::same_as<buffer>... Buffers>
  event submit_after(const dependencies& after, Function&& function,
                     const Buffers&... buffers) const;

  // Equal when they stand for the same driver queue.
  friend bool operator==(const queue& a, const queue& b) noexcept {
    return a.get() == b.get() ||
           (a && b && isthmus_queue_key(a.get()) == isthmus_queue_key(b.get()));
  }

 private:
  static isthmus_queue_t* create(isthmus_context_t* context, isthmus_device_t* device) {
    isthmus_queue_t* raw = nullptr;
    detail::check(isthmus_queue_create(context, device, &raw));
    return raw;
  }
};

// Which queue an operation goes to; {} leaves the choice to the operation.
class queue_choice {
 public:
  queue_choice() noexcept = default;
  queue_choice(const queue& chosen) noexcept : raw_(chosen.get()) {}
  [[nodiscard]] isthmus_queue_t* get() const noexcept { return raw_; }

 private:
  isthmus_queue_t* raw_ = nullptr;
};

static_assert(std::copyable<queue> && std::equality_comparable<queue>);
static_assert(std::is_nothrow_move_constructible_v<queue>);
static_assert(sizeof(queue) == sizeof(void*));

}  // namespace v1
}  // namespace isthmus
