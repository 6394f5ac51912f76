// SPDX-License-Identifier: Apache-2.0
#pragma once
// An object that exists once per thread and is destroyed when the thread ends:
//
//   thread_local constinit OwnedByThread<Error> last;
//   if (Error* own = last.get()) ...
//
// A thread_local with a destructor is not usable: glibc allocates memory for it in each thread and
// terminates the process if there is none (`__cxa_thread_atexit_impl`, in its
// stdlib/cxa_thread_atexit_impl.c). Instead one pthreads key serves all of these objects. Its
// destructor runs after those of thread_locals, which may therefore still call the library. A
// return from `main` destroys none of these objects.

#include <cstddef>
#include <cstdint>
#include <new>

namespace isthmus {

namespace detail {

// One object, in the thread's list of objects to destroy when it ends.
struct ThreadExitEntry {
  enum class State : std::uint8_t { unconstructed, constructed, destroyed };

  void (*destroy)(ThreadExitEntry&) noexcept;
  ThreadExitEntry* next = nullptr;
  State state = State::unconstructed;
};

// Returns false if there is no memory.
[[nodiscard]] bool destroy_at_thread_exit(ThreadExitEntry& object) noexcept;

}  // namespace detail

// T's constructor and destructor are noexcept. They may use other objects of this type; objects
// that were already destroyed return null.
template <class T>
class OwnedByThread : detail::ThreadExitEntry {
 public:
  constexpr OwnedByThread() noexcept : ThreadExitEntry{destroy_value} {}

  // Constructs the object at the thread's first call. Null if there is no memory for that, and
  // after the object was destroyed.
  [[nodiscard]] T* get() noexcept {
    return state == State::constructed || construct() ? value() : nullptr;
  }
  // As `get`, but does not construct the object: null if it was not constructed yet.
  [[nodiscard]] T* find() noexcept { return state == State::constructed ? value() : nullptr; }
  [[nodiscard]] bool is_destroyed() const noexcept { return state == State::destroyed; }

 private:
  [[nodiscard]] bool construct() noexcept {
    if (state == State::destroyed || !detail::destroy_at_thread_exit(*this)) {
      return false;
    }
    ::new (static_cast<void*>(storage_)) T;
    state = State::constructed;
    return true;
  }
  [[nodiscard]] T* value() noexcept { return std::launder(reinterpret_cast<T*>(storage_)); }
  static void destroy_value(ThreadExitEntry& object) noexcept {
    static_cast<OwnedByThread&>(object).value()->~T();
  }

  alignas(T) std::byte storage_[sizeof(T)]{};
};

}  // namespace isthmus
