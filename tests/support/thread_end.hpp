// SPDX-License-Identifier: Apache-2.0
// Runs a function at the very end of a thread, after the destructors of its thread-local objects.
#pragma once

#include <pthread.h>

#include <functional>

namespace support {

// Runs `last` on the calling thread at its end, after the destructors of its thread_locals and of
// all other pthread keys.
inline void run_at_thread_end(const std::function<void()>& last) {
  struct wish {
    std::function<void()> run;
    pthread_key_t key{};
    bool others_came = false;
  };
  auto* const made = new wish{last};
  // A value that a destructor sets again is destroyed in a further round, after the other keys of
  // this round.
  pthread_key_create(&made->key, [](void* at) {
    auto* const its = static_cast<wish*>(at);
    if (!its->others_came) {
      its->others_came = true;
      pthread_setspecific(its->key, its);
      return;
    }
    its->run();
    pthread_key_delete(its->key);
    delete its;
  });
  pthread_setspecific(made->key, made);
}

}  // namespace support
