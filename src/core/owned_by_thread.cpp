// SPDX-License-Identifier: Apache-2.0
#include "core/owned_by_thread.hpp"

#include <pthread.h>

namespace isthmus::detail {
namespace {

thread_local constinit ThreadExitEntry* list_head = nullptr;

void destroy_all(void*) noexcept {
  while (list_head != nullptr) {
    auto& object = *list_head;
    list_head = object.next;
    object.state = ThreadExitEntry::State::destroyed;
    object.destroy(object);
  }
}

}  // namespace

bool destroy_at_thread_exit(ThreadExitEntry& object) noexcept {
  static pthread_key_t key;
  static const bool has_key = pthread_key_create(&key, destroy_all) == 0;
  if (!has_key || (list_head == nullptr && pthread_setspecific(key, &object) != 0)) {
    return false;
  }
  object.next = list_head;
  list_head = &object;
  return true;
}

}  // namespace isthmus::detail
