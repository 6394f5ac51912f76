// SPDX-License-Identifier: Apache-2.0
#include "core/owned_by_thread.hpp"

#include <pthread.h>

namespace isthmus::detail {
namespace {

thread_local constinit EndsWithThread* newest = nullptr;

void end_all(void*) noexcept {
  while (newest != nullptr) {
    auto& one = *newest;
    newest = one.next;
    one.is = EndsWithThread::State::gone;
    one.destroy(one);
  }
}

}  // namespace

bool end_with_thread(EndsWithThread& one) noexcept {
  static pthread_key_t key;
  static const bool known = pthread_key_create(&key, end_all) == 0;
  if (!known || (newest == nullptr && pthread_setspecific(key, &one) != 0)) {
    return false;
  }
  one.next = newest;
  newest = &one;
  return true;
}

}  // namespace isthmus::detail
