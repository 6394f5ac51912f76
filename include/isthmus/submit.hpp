// queue.submit: C++ functions in a queue's order, with the bytes of the buffers they work on.
//
//   queue.submit([](std::span<std::byte> in, std::span<std::byte> out) { ... }, a, b).wait();
//
// Choose it for host work between device operations; on the host and simulated back-ends it is what
// kernels are. Buffers of device kind need capability::run_functions.
// Cost: one allocation, and a hand-over to a thread of the library. Threads: the function runs on a
// thread of the library and may wait for nothing that is behind it in the queue. What it throws
// ends the event: callback_failed with the exception's text.
#pragma once

#include <isthmus/buffer.hpp>

#include <array>

namespace isthmus {
inline namespace v1 {
namespace detail {

template <class Function, std::size_t... I>
void call_with_spans(Function& function, const isthmus_view_t* views, std::index_sequence<I...>) {
  function(std::span<std::byte>(static_cast<std::byte*>(views[I].data), views[I].nbytes)...);
}

// The function and, after a failure, its text, which must outlive the call into the library.
template <class Function, std::size_t Count>
struct submitted {
  Function function;
  std::string message{};

  static isthmus_status_t run(void* object, const isthmus_view_t* views, std::size_t,
                              const char** message) noexcept {
    auto* self = static_cast<submitted*>(object);
    try {
      call_with_spans(self->function, views, std::make_index_sequence<Count>());
      return ISTHMUS_OK;
    } catch (const std::exception& problem) {
      return self->fail(problem.what(), message);
    } catch (...) {
      return self->fail("an exception that is no std::exception", message);
    }
  }

  isthmus_status_t fail(const char* text, const char** out) noexcept {
    try {
      message = text;
      *out = message.c_str();
    } catch (...) {
      *out = "an exception, and no memory for its text";
    }
    return ISTHMUS_ERROR_CALLBACK;
  }
};

}  // namespace detail

template <class Function, std::same_as<buffer>... Buffers>
event queue::submit_after(const dependencies& after, Function&& function,
                          const Buffers&... buffers) const {
  using work = detail::submitted<std::decay_t<Function>, sizeof...(Buffers)>;
  const std::array<isthmus_buffer_t*, sizeof...(Buffers)> raw{buffers.get()...};
  const isthmus_owner_t owner{new work{std::forward<Function>(function)},
                              [](void* object) { delete static_cast<work*>(object); }};
  return detail::make<event>(isthmus_queue_submit, get(), &work::run, owner, raw.data(), raw.size(),
                             after.data(), after.size());
}

template <class Function, std::same_as<buffer>... Buffers>
event queue::submit(Function&& function, const Buffers&... buffers) const {
  return submit_after({}, std::forward<Function>(function), buffers...);
}

}  // namespace v1
}  // namespace isthmus
