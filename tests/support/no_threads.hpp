// SPDX-License-Identifier: Apache-2.0
// Replaces the program's pthread_create by a version that fails on request. To be included by
// exactly one file of a program. It also serves the library, whether linked or loaded.
#pragma once

#include <dlfcn.h>
#include <pthread.h>

#include <cerrno>

namespace support {

inline thread_local bool threads_are_denied = false;

// During its lifetime the thread that made it cannot start threads.
class without_threads {
 public:
  without_threads() noexcept { threads_are_denied = true; }
  without_threads(const without_threads&) = delete;
  without_threads& operator=(const without_threads&) = delete;
  ~without_threads() { threads_are_denied = false; }
};

}  // namespace support

// NOLINTBEGIN(misc-definitions-in-headers): the program's own, for its tests
extern "C" [[gnu::visibility("default")]] int pthread_create(pthread_t* thread,
                                                             const pthread_attr_t* attributes,
                                                             void* (*body)(void*),
                                                             void* argument) noexcept {
  using creator = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  if (support::threads_are_denied) return EAGAIN;
  // The next definition: a sanitizer's if there is one, otherwise the C library's.
  static const auto next = reinterpret_cast<creator>(dlsym(RTLD_NEXT, "pthread_create"));
  return next(thread, attributes, body, argument);
}
// NOLINTEND(misc-definitions-in-headers)
