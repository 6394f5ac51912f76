// SPDX-License-Identifier: Apache-2.0
// queue::submit() runs C++ functions in the order of a queue, with the memory of the buffers and
// arrays that they access.
//
//   queue.submit([](std::span<std::byte> in, std::span<float> out) { ... }, a, b).wait();
//
// The function takes a std::span for each argument. That of a buffer has any trivially copyable
// element type; if the bytes are not whole, aligned elements of it, the event fails with
// callback_failed. A parameter of type `auto` is derived from std::span<std::byte>. That of an
// array<T, N> is a std::span<T> of its elements in row-major order; submit() throws
// invalid_argument for an array with gaps. For a dyn_array pass its bytes().
//
// Use it for host work between device operations. On the host and simulated backends such functions
// replace kernels. Buffers of device kind need capability::run_functions. If the function throws,
// its event fails with callback_failed and the exception's text.
//
// The function runs on a thread of the library, and may use the library. A call in it that would
// wait for work which starts only after the function has returned, such as later work on the same
// queue, throws `deadlock`; isthmus_queue_submit lists what is not detected. A failure whose event
// is dropped before it was retrieved is printed to stderr.
//
// Cost: one allocation, and a hand-over to a thread of the library. Thread-safe.
#pragma once

#include <isthmus/buffer.hpp>

#include <array>

namespace isthmus {
inline namespace v1 {
namespace detail {

// How submit() passes an argument to the function: `memory` returns the buffer whose bytes the
// function may access, and `view` what it is called with. Specialized for arrays in array.hpp.
template <class Argument>
struct submitted_memory {
  static constexpr bool is_supported = false;
};

// The bytes of a buffer, which convert to a span of the type that the function takes.
class submitted_bytes : public std::span<std::byte> {
 public:
  explicit submitted_bytes(std::span<std::byte> bytes) noexcept : span(bytes) {}

  template <class T>
    requires(!std::is_same_v<std::remove_const_t<T>, std::byte>)
  operator std::span<T>() const {
    static_assert(std::is_trivially_copyable_v<T>,
                  "a buffer holds bytes: the span's element type must be trivially copyable");
    if (size() % sizeof(T) != 0 || reinterpret_cast<std::uintptr_t>(data()) % alignof(T) != 0) {
      raise(status::invalid_argument, std::to_string(size()) +
                                          " bytes are not whole, aligned elements of " +
                                          std::to_string(sizeof(T)) + " bytes");
    }
    return {reinterpret_cast<T*>(data()), size() / sizeof(T)};
  }
};

template <>
struct submitted_memory<buffer> {
  static constexpr bool is_supported = true;
  [[nodiscard]] static const buffer& memory(const buffer& argument) noexcept { return argument; }
  [[nodiscard]] static submitted_bytes view(const isthmus_view_t& raw) noexcept {
    return submitted_bytes({static_cast<std::byte*>(raw.data), raw.nbytes});
  }
};

template <class Argument>
using submitted_view = decltype(submitted_memory<Argument>::view(isthmus_view_t{}));

// The function and, after a failure, the text of its exception, which must outlive run().
template <class Function, class... Memory>
struct submitted {
  Function function;
  std::string message{};

  static isthmus_status_t run(void* object, const isthmus_view_t* views, std::size_t,
                              const char** message) noexcept {
    auto* self = static_cast<submitted*>(object);
    try {
      self->call(views, std::index_sequence_for<Memory...>());
      return ISTHMUS_OK;
    } catch (const std::exception& problem) {
      return self->fail(problem.what(), message);
    } catch (...) {
      return self->fail("an exception that is not a std::exception", message);
    }
  }

  template <std::size_t... I>
  void call([[maybe_unused]] const isthmus_view_t* views, std::index_sequence<I...>) {
    function(submitted_memory<Memory>::view(views[I])...);
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

template <class Stored, class... Memory, class Function, std::same_as<buffer>... Buffers>
event submit_function(const queue& queue, const dependencies& after, Function&& function,
                      const Buffers&... buffers) {
  using work = submitted<Stored, Memory...>;
  isthmus_queue_t* const raw_queue = queue.require();
  const std::array<isthmus_buffer_t*, sizeof...(Buffers)> raw{buffers.require()...};
  const isthmus_owner_t owner{new work{std::forward<Function>(function)},
                              [](void* object) { delete static_cast<work*>(object); }};
  return make<event>(isthmus_queue_submit, raw_queue, &work::run, owner, raw.data(), raw.size(),
                     after.data(), after.size());
}

}  // namespace detail

template <class Function, class... Memory>
event queue::submit_after(const dependencies& after, Function&& function,
                          const Memory&... memory) const {
  constexpr bool is_supported = (detail::submitted_memory<Memory>::is_supported && ...);
  static_assert(is_supported,
                "submit() takes a function and the buffers and arrays that it accesses");
  if constexpr (is_supported) {
    using stored = std::decay_t<Function>;
    constexpr bool is_callable = std::is_invocable_v<stored&, detail::submitted_view<Memory>...>;
    static_assert(is_callable, "the function takes one std::span for each buffer and array");
    if constexpr (is_callable) {
      return detail::submit_function<stored, Memory...>(
          *this, after, std::forward<Function>(function),
          detail::submitted_memory<Memory>::memory(memory)...);
    }
  }
}

template <class Function, class... Memory>
event queue::submit(Function&& function, const Memory&... memory) const {
  return submit_after({}, std::forward<Function>(function), memory...);
}

}  // namespace v1
}  // namespace isthmus
