// SPDX-License-Identifier: Apache-2.0
#pragma once
// An object that exists once per thread and is destroyed when the thread ends:
//
//   thread_local constinit owned_by_thread<last_error> last;
//   if (last_error* mine = last.get()) ...
//
// A thread_local with a destructor does not serve: glibc allocates memory for it in each thread and
// terminates the process if there is none (`__cxa_thread_atexit_impl`, in its
// stdlib/cxa_thread_atexit_impl.c). Instead one pthreads key serves all of these objects. Its
// destructor runs after those of thread_locals, which may therefore still call the library. In the
// thread of `main` nothing is destroyed.

#include <cstddef>
#include <cstdint>
#include <new>

namespace isthmus {

namespace detail {

// One object, in the thread's list of objects to destroy when it ends.
struct EndsWithThread {
  enum class State : std::uint8_t { unmade, made, gone };

  void (*destroy)(EndsWithThread&) noexcept;
  EndsWithThread* next = nullptr;
  State is = State::unmade;
};

// False if there is no memory.
[[nodiscard]] bool end_with_thread(EndsWithThread& one) noexcept;

}  // namespace detail

// T's constructor and destructor are noexcept. They may use other objects of this type; objects
// that were already destroyed return null.
template <class T>
class OwnedByThread : detail::EndsWithThread {
 public:
  constexpr OwnedByThread() noexcept : EndsWithThread{destroy_value} {}

  // Constructed at the thread's first call. Null if there is no memory for that, and after its
  // destruction.
  [[nodiscard]] T* get() noexcept { return is == State::made || make() ? value() : nullptr; }
  // As `get`, but does not construct: null if it was not constructed yet.
  [[nodiscard]] T* find() noexcept { return is == State::made ? value() : nullptr; }
  [[nodiscard]] bool is_gone() const noexcept { return is == State::gone; }

 private:
  [[nodiscard]] bool make() noexcept {
    if (is == State::gone || !detail::end_with_thread(*this)) {
      return false;
    }
    ::new (static_cast<void*>(room_)) T;
    is = State::made;
    return true;
  }
  [[nodiscard]] T* value() noexcept { return std::launder(reinterpret_cast<T*>(room_)); }
  static void destroy_value(EndsWithThread& one) noexcept {
    static_cast<OwnedByThread&>(one).value()->~T();
  }

  alignas(T) std::byte room_[sizeof(T)]{};
};

}  // namespace isthmus
