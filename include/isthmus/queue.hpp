// SPDX-License-Identifier: Apache-2.0
// A queue executes operations in the order of their submission.
//
//   auto queue = isthmus::queue::of(isthmus::device::best());   // the device's default queue
//   isthmus::queue second(device);                              // another one: runs concurrently
//
// Cost: of() is a lookup; a new queue takes a driver call. A queue of the host backend starts a
// thread on first use. Thread-safe. If several threads submit operations, those of each thread
// remain in order.
#pragma once

#include <isthmus/context.hpp>
#include <isthmus/event.hpp>

namespace isthmus {
inline namespace v1 {

class buffer;

template <>
inline constexpr const char* detail::class_name<isthmus_queue_t> = "queue";

// A counted reference to a queue.
class queue
    : public detail::handle<queue, isthmus_queue_t, isthmus_queue_retain, isthmus_queue_release> {
 public:
  queue() noexcept = default;
  // A new queue of the device, in the device's default context or in `context`. Throws
  // wrong_context for a device that is not in `context`.
  explicit queue(const v1::device& device) : handle(create(nullptr, device.get())) {}
  queue(const v1::context& context, const v1::device& device)
      : handle(create(context.get(), device.get())) {}

  // The default queue of a device, in the device's default context. There is one per device in a
  // process.
  [[nodiscard]] static queue of(const v1::device& device) {
    return detail::make<queue>(isthmus_queue_default, device.get());
  }
  // Adopts a driver's queue (OpenCL: cl_command_queue; SYCL: sycl::queue, as dpctl's reference;
  // CUDA: CUstream). The driver's reference count keeps the driver's queue alive. CUDA has no
  // reference counts: the stream must outlive the queue and all memory used on it. On an
  // out-of-order queue each operation is preceded by a barrier. Throws wrong_context for a queue of
  // another device. See isthmus_queue_adopt.
  [[nodiscard]] static queue adopt(const v1::device& device, void* native) {
    return detail::make<queue>(isthmus_queue_adopt, device.get(), native, isthmus_owner_t{});
  }
  // The same, but `owner` (any object) keeps the driver's queue alive. `owner` is destroyed when
  // the queue is no longer needed.
  template <class Owner>
  [[nodiscard]] static queue adopt(const v1::device& device, void* native, Owner&& owner) {
    return detail::make<queue>(isthmus_queue_adopt, device.get(), native,
                               detail::make_owner(std::forward<Owner>(owner)));
  }

  [[nodiscard]] v1::device device() const { return v1::device::share(raw_info().device); }
  [[nodiscard]] v1::context context() const { return v1::context::share(raw_info().context); }
  // Exports the driver's handle (OpenCL: cl_command_queue), for work of the caller. NULL if there
  // is none. From then on the queue may have external work, so that memory freed on it is reused
  // only after a fence. Throws the driver's error if it cannot order external work.
  [[nodiscard]] void* export_native() const {
    void* native = nullptr;
    detail::check(isthmus_queue_export_native(require(), &native));
    return native;
  }

  // True if nothing that the library submitted is pending. Does not block.
  [[nodiscard]] bool idle() const noexcept { return isthmus_queue_idle(get()) != 0; }
  // Waits for everything submitted so far.
  void wait() const { detail::check(isthmus_queue_wait(require(), -1)); }
  // An event that completes, with success, once everything submitted so far has ended.
  [[nodiscard]] event pending() const {
    return detail::make<event>(isthmus_queue_pending, require());
  }
  // Submits a fence: an event that completes once everything submitted so far, and all of `after`,
  // has completed.
  event fence(const dependencies& after = {}) const {
    return detail::make<event>(isthmus_queue_fence, require(), after.data(), after.size());
  }
  // The same without `after`, as an event that records its time, for event::elapsed_since.
  [[nodiscard]] event mark() const { return detail::make<event>(isthmus_queue_mark, require()); }
  // Rejects further work, which then throws closed; submitted work still runs. Never blocks. Throws
  // invalid_argument for a device's default queue.
  void close() const { detail::check(isthmus_queue_close(require())); }

  // Runs `function`, with one std::span per buffer or array, in this queue's order on a thread of
  // the library. If `function` throws, the event fails with callback_failed and the exception's
  // text. Requires submit.hpp.
  template <class Function, class... Memory>
  event submit(Function&& function, const Memory&... memory) const;
  // The same, after the events in `after`.
  template <class Function, class... Memory>
  event submit_after(const dependencies& after, Function&& function, const Memory&... memory) const;

  // Two queues are equal if they refer to the same driver queue.
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
  isthmus_queue_info_t raw_info() const {
    return detail::read<isthmus_queue_info_t>(isthmus_queue_info, require());
  }
};

// The queue of an operation. {} leaves the choice to the operation. Borrows the queue: use it as a
// function argument only.
class queue_choice {
 public:
  queue_choice() noexcept = default;
  queue_choice(const queue& queue) noexcept : raw_(queue.get()) {}
  [[nodiscard]] isthmus_queue_t* get() const noexcept { return raw_; }

 private:
  isthmus_queue_t* raw_ = nullptr;
};

}  // namespace v1
}  // namespace isthmus
