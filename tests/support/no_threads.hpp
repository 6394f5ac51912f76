// The program's own pthread_create, which fails while a test asks for that. For one file of a
// program; the library linked into it, or loaded by it, starts its threads by that, too.
#pragma once

#include <dlfcn.h>
#include <pthread.h>

#include <cerrno>

namespace support {

inline thread_local bool threads_are_denied = false;

// While it lives the thread that made it can start no other.
class without_threads {
 public:
  without_threads() noexcept { threads_are_denied = true; }
  without_threads(const without_threads&) = delete;
  without_threads& operator=(const without_threads&) = delete;
  ~without_threads() { threads_are_denied = false; }
};

}  // namespace support

// NOLINTBEGIN(misc-definitions-in-headers): the program's own, for its tests
extern "C" [[gnu::visibility("default")]] int pthread_create(pthread_t* made,
                                                             const pthread_attr_t* how,
                                                             void* (*body)(void*),
                                                             void* argument) noexcept {
  using creator = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  if (support::threads_are_denied) return EAGAIN;
  // A sanitizer's, where there is one, which comes before the C library's.
  static const auto next = reinterpret_cast<creator>(dlsym(RTLD_NEXT, "pthread_create"));
  return next(made, how, body, argument);
}
// NOLINTEND(misc-definitions-in-headers)
