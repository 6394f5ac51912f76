// SPDX-License-Identifier: Apache-2.0
// queue::submit() runs C++ functions in the order of a queue, with the bytes of the buffers that
// they access.
//
//   queue.submit([](std::span<std::byte> in, std::span<std::byte> out) { ... }, a, b).wait();
//
// Use it for host work between device operations. On the host and simulated backends such functions
// replace kernels. Buffers of device kind need capability::run_functions. If the function throws,
// its event fails with callback_failed and the exception's text.
//
// Cost: one allocation, and a hand-over to a thread of the library. Thread-safe. The function runs
// on a thread of the library, and must not wait for operations that are submitted after it to the
// same queue.
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

// The function and, after a failure, the text of its exception, which must outlive run().
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
      return self->fail("an exception that is not a std::exception", message);
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
