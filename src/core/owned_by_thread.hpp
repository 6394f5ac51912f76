#pragma once
// What each thread has one of, and what ends with the thread:
//
//   thread_local constinit owned_by_thread<last_error> last;
//   if (last_error* mine = last.get()) ...
//
// Not a thread_local with a destructor: for that glibc needs memory in each thread, and where there
// is none it ends the process (`__cxa_thread_atexit_impl`, in its stdlib/cxa_thread_atexit_impl.c).
// Here a key of pthreads stands for all of them. Its destructor comes behind those of
// thread_locals, which may so still call the library. In the thread of `main` nothing is destroyed.

#include <cstddef>
#include <cstdint>
#include <new>

namespace isthmus {

namespace detail {

// One of a thread's, in the list of what ends with it.
struct ends_with_thread {
  enum class state : std::uint8_t { unmade, made, gone };

  void (*destroy)(ends_with_thread&) noexcept;
  ends_with_thread* next = nullptr;
  state is = state::unmade;
};

// False without memory.
[[nodiscard]] bool end_with_thread(ends_with_thread& one) noexcept;

}  // namespace detail

// T's constructor and destructor are noexcept, and may use others of these: of those that are gone
// there is nothing to be had.
template <class T>
class owned_by_thread : detail::ends_with_thread {
 public:
  constexpr owned_by_thread() noexcept : ends_with_thread{destroy_value} {}

  // Made at the thread's first call. Null where there is no memory for that, and once it is gone.
  [[nodiscard]] T* get() noexcept { return is == state::made || make() ? value() : nullptr; }
  // Null if it was not made, too.
  [[nodiscard]] T* find() noexcept { return is == state::made ? value() : nullptr; }
  [[nodiscard]] bool is_gone() const noexcept { return is == state::gone; }

 private:
  [[nodiscard]] bool make() noexcept {
    if (is == state::gone || !detail::end_with_thread(*this)) {
      return false;
    }
    ::new (static_cast<void*>(room_)) T;
    is = state::made;
    return true;
  }
  [[nodiscard]] T* value() noexcept { return std::launder(reinterpret_cast<T*>(room_)); }
  static void destroy_value(ends_with_thread& one) noexcept {
    static_cast<owned_by_thread&>(one).value()->~T();
  }

  alignas(T) std::byte room_[sizeof(T)]{};
};

}  // namespace isthmus
